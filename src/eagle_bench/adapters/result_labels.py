"""Which variant and level a saved result is of: as said on the command line, in the file, or in its name."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from eagle_bench.damage import MOST_CONCURRENCY, is_name
from eagle_bench.errors import InputError

# vLLM's own: eagle3-infqps-concurrency4-MODEL-DATE.json; a rate, a model or a date is no concurrency.
_VLLM_NAME = re.compile(
    r"^(?P<variant>.+?)-(?:inf|[\d.]+)qps(?:-concurrency(?P<level>\d{1,6}))?(?:-.*)?$", re.I | re.A | re.S
)


# eagle3-concurrency4.json, eagle3-concurrency4-again.json; eagle3_c4.json, eagle3@4.json
_NAME = re.compile(
    r"^(?P<variant>.+?)(?:[-_.]concurrency[-_=]?(?P<level>\d{1,6})(?:[-_.].*)?"
    r"|(?:[-_.](?:conc|c)[-_=]?|@)(?P<short>\d{1,6}))$",
    re.I | re.A | re.S,
)


_LEVEL = re.compile(r"[1-9]\d{0,5}", re.A)


@dataclass(frozen=True)
class Label:
    """Which variant and level a file is of, as said on the command line."""

    variant: str
    concurrency: int | None = None

    @classmethod
    def parse(cls, text: str) -> tuple[Path, Label]:
        """Read FILE=VARIANT or FILE=VARIANT@CONCURRENCY.

        Raises:
            InputError: it is of another form.
        """
        path, equals, name = text.rpartition("=")
        variant, at, level = name.rpartition("@") if "@" in name else (name, "", "")
        if not equals or not path or not is_name(variant) or (at and not _LEVEL.fullmatch(level)):
            raise InputError(
                f"--label {text!r}: must be FILE=VARIANT or FILE=VARIANT@CONCURRENCY, such as a.json=eagle3@4."
            )
        return Path(path), cls(variant, int(level) if level else None)


def labelled(file: Path, data: Mapping[str, Any], label: Label | None) -> tuple[str, int]:
    """Variant and level of a vLLM result: from the command line, else the file's content, else its name."""
    name = _VLLM_NAME.match(file.stem) or _NAME.match(file.stem)
    parts = name.groupdict() if name else {}
    variant = label.variant if label else data.get("variant") or data.get("label") or parts.get("variant")
    said = data.get("max_concurrency")
    if said is not None and (type(said) is not int or not 1 <= said <= MOST_CONCURRENCY):
        raise InputError(f"{file}: `max_concurrency` must be a whole number from 1 to {MOST_CONCURRENCY}, is {said!r}.")
    named = int(parts.get("level") or parts.get("short") or 0)
    if label and said:
        refuse_other_level(file, label, said)
    elif said and named and named != said:
        raise InputError(
            f"{file}: its name says concurrency {named}, its content {said}.",
            hint=f"If the content is right: --label {file}={variant}@{said}.",
        )
    level = (label.concurrency if label else None) or said or named
    if variant and is_name(str(variant)) and level:
        return str(variant), int(level)
    unknown = "concurrency" if variant and is_name(str(variant)) else "variant"
    raise InputError(
        f"{file}: does not tell its {unknown}.",
        hint=f"Say it: --label {file}=VARIANT@CONCURRENCY, or name the file like eagle3-concurrency4.json.",
    )


def refuse_other_level(file: Path, label: Label, said: int) -> None:
    """A label is for what a file does not tell: it can't make a measurement one of another level."""
    if label.concurrency not in {None, said}:
        raise InputError(
            f"--label {file}: concurrency {label.concurrency} is not what the file holds: it was measured at {said}.",
            hint=f"Give {file}={label.variant}.",
        )
