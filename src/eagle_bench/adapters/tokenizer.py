"""A tokenizer's files as a counter: `tokenizers` for the text and Jinja for the chat template.

`transformers` would do the same and takes seconds to import; it is asked only where a folder has no `tokenizer.json`.
"""

from __future__ import annotations

import json
import shutil
from collections.abc import Sequence
from datetime import datetime
from fnmatch import fnmatch
from pathlib import Path
from typing import TYPE_CHECKING, Any, NoReturn

from eagle_bench.errors import InputError, because
from eagle_bench.workload.conversations import LFS_POINTER
from eagle_bench.workload.filters import TemplateRefusal

if TYPE_CHECKING:
    from eagle_bench.workload.filters import TokenCounter
    from eagle_bench.workload.prompts import Message

FAST, CONFIG, SLOW = "tokenizer.json", "tokenizer_config.json", "tokenizer.model"
TEMPLATE_JINJA, TEMPLATE_JSON = "chat_template.jinja", "chat_template.json"
FILES = ("*.json", "tokenizer.model", "*.txt", "*.jinja")
NOT_FILES = ("*.index.json", "README*", "LICENSE*")  # lists of weights, and what no tokenizer reads
SPECIAL = ("bos_token", "eos_token", "pad_token", "unk_token")


def is_file(name: str) -> bool:
    """Whether a file of this name belongs to a tokenizer: weights never do."""
    return any(fnmatch(name, p) for p in FILES) and not any(fnmatch(name, p) for p in NOT_FILES)


def copy(source: Path, target: Path) -> None:
    """Copy a tokenizer's files and nothing else that lies in its folder: a model's weights often do."""
    target.mkdir(parents=True, exist_ok=True)
    for path in source.iterdir():
        if path.is_file() and is_file(path.name):
            shutil.copyfile(path, target / path.name)


def load(folder: Path) -> TokenCounter:
    """Load a tokenizer from its folder.

    Raises:
        InputError: the folder holds no tokenizer, or one that can't be loaded.
    """
    if not folder.is_dir():
        raise InputError(f"{folder}: there is no such tokenizer folder.")
    try:
        for name in (FAST, SLOW):
            if (folder / name).is_file():
                _refuse_pointer(folder / name)
        if (folder / FAST).is_file():
            return _Fast(folder)
        if (folder / SLOW).is_file():
            return _Slow(folder)
    except InputError:
        raise
    except Exception as error:  # the libraries raise bare ones of many kinds
        raise InputError(because(f"{folder}: the tokenizer can't be loaded", error)) from error
    found = ", ".join(sorted(path.name for path in folder.iterdir())[:8]) or "nothing"
    raise InputError(f"{folder}: holds no tokenizer: {FAST} or {SLOW} is needed, found {found}.")


def _refuse_pointer(file: Path) -> None:
    with file.open("rb") as content:
        if content.read(len(LFS_POINTER)) == LFS_POINTER:
            raise InputError(
                f"{file}: stands for the file in Git LFS, and is not it.", hint="`git lfs pull` fetches it."
            )


class _Fast:
    """`tokenizer.json` with the chat template of the folder."""

    def __init__(self, folder: Path) -> None:
        from tokenizers import Tokenizer

        self._folder = folder
        self._tokenizer = Tokenizer.from_file(str(folder / FAST))
        self._tokenizer.no_truncation()
        self._tokenizer.no_padding()
        settings = _json(folder / CONFIG)
        self._special = {name: _token(settings[name]) for name in SPECIAL if settings.get(name)}
        template = _template(folder, settings)
        self._render = _environment().from_string(template) if template else None

    def count(self, messages: Sequence[Message]) -> int:
        """Tokens of a conversation as the chat template writes it, with the start of the answer.

        Without a chat template: of the texts alone.
        """
        if self._render is None:
            return self.count_text("\n".join(message.content for message in messages))
        try:
            text = self._render.render(
                messages=[message.model_dump() for message in messages], add_generation_prompt=True, **self._special
            )
        except Exception as error:  # a template may raise what it likes
            raise TemplateRefusal(self._folder, error) from error
        return len(self._tokenizer.encode(text, add_special_tokens=False))

    def count_text(self, text: str) -> int:
        """Tokens of a text alone, without special tokens."""
        return len(self._tokenizer.encode(text, add_special_tokens=False))


class _Slow:
    """A SentencePiece model, through `transformers`."""

    def __init__(self, folder: Path) -> None:
        try:
            from transformers import AutoTokenizer
        except ImportError:
            raise InputError(
                f"{folder}: has {SLOW} and no {FAST}: the package `transformers` is needed to read it.",
                hint="Install eagle-bench[client], or add the model's tokenizer.json.",
            ) from None
        self._folder = folder
        self._tokenizer: Any = AutoTokenizer.from_pretrained(str(folder), local_files_only=True)

    def count(self, messages: Sequence[Message]) -> int:
        """Tokens of a conversation as the chat template writes it; without one, of the texts alone."""
        if not self._tokenizer.chat_template:
            return self.count_text("\n".join(message.content for message in messages))
        try:
            text = self._tokenizer.apply_chat_template(
                [message.model_dump() for message in messages], add_generation_prompt=True, tokenize=False
            )
        except Exception as error:  # a template may raise what it likes
            raise TemplateRefusal(self._folder, error) from error
        return self.count_text(text)

    def count_text(self, text: str) -> int:
        """Tokens of a text alone, without special tokens."""
        return len(self._tokenizer.encode(text, add_special_tokens=False))


def _json(path: Path) -> dict[str, Any]:
    if not path.is_file():
        return {}
    data = json.loads(path.read_text(encoding="utf-8"))
    return data if isinstance(data, dict) else {}


def _token(value: str | dict[str, Any]) -> str:
    return value if isinstance(value, str) else str(value.get("content", ""))


def _template(folder: Path, settings: dict[str, Any]) -> str | None:
    """The chat template from where the formats of the years keep it."""
    if (folder / TEMPLATE_JINJA).is_file():
        return (folder / TEMPLATE_JINJA).read_text(encoding="utf-8")
    template = _json(folder / TEMPLATE_JSON).get("chat_template") or settings.get("chat_template")
    if isinstance(template, list):  # several by name
        template = next((t["template"] for t in template if t.get("name") == "default"), None)
    return template if isinstance(template, str) else None


def _environment() -> Any:
    """Jinja as `transformers` sets it up: the templates are written for that. Sandboxed: they come from outside."""
    from jinja2.exceptions import TemplateError
    from jinja2.ext import loopcontrols
    from jinja2.sandbox import ImmutableSandboxedEnvironment

    def refuse(message: str) -> NoReturn:
        raise TemplateError(message)

    def to_json(value: Any, indent: int | None = None) -> str:
        return json.dumps(value, ensure_ascii=False, indent=indent)

    environment = ImmutableSandboxedEnvironment(trim_blocks=True, lstrip_blocks=True, extensions=[loopcontrols])
    environment.filters["tojson"] = to_json
    environment.globals["raise_exception"] = refuse
    environment.globals["strftime_now"] = lambda form: datetime.now().strftime(form)
    return environment
