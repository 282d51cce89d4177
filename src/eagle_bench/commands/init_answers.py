"""What `init` is told: by flags, by the person at the terminal, or by default."""

from __future__ import annotations

import re
import sys
from collections.abc import Callable
from pathlib import Path

import click

from eagle_bench.adapters.hugging_face import MODEL
from eagle_bench.secrecy import SECRET_NAME

# What an answer must look like, and in words.
FORMS = {
    "model": (MODEL.pattern, "publisher/model@version of Model Garden, or a Hugging Face id (owner/name)"),
    "tokenizer": (
        rf"{MODEL.pattern}|gs://[^/\s]+.*|[/.~].*",
        "a Hugging Face id (owner/name), a gs:// folder, or a folder that exists",
    ),
    "bucket": (r"gs://[^/\s]+.*", "a gs:// folder, such as gs://my-bucket/eagle-bench"),
    "accelerator": (r"[^=\s]+=[1-9]\d*", "TYPE=COUNT, such as NVIDIA_L4=1"),
    "engine": (r"sglang|vllm", "sglang or vllm"),
    "levels": (r"[1-9]\d*(,[1-9]\d*)*", "numbers with commas, such as 1,2,4"),
    "service_account": (
        r"[^@\s]+@[^@\s]+",
        "an account's e-mail address, such as eagle-bench-run@my-project.iam.gserviceaccount.com",
    ),
    "hf_token_secret": (SECRET_NAME, "a name, such as projects/my-project/secrets/hf-token/versions/latest"),
}
UNSHOWN = {"hf_token_secret"}  # where a name is wanted, someone gives the token: it is not said again


class Answers:
    """What flags say, then what the person at the terminal says, then defaults.

    Nobody is asked when the flags say all that has no default: a notebook's `!` is a terminal at which nobody answers.
    """

    def __init__(self, given: dict[str, str | None], needed: tuple[str, ...], *, asked: bool = False) -> None:
        """`asked`: somebody at a terminal has answered already, and is asked for the rest."""
        self._given, self._used = given, set[str]()
        self._missing = [f"--{name}" for name in needed if not given.get(name)]
        self._asks = asked or (bool(self._missing) and sys.stdin.isatty())

    def get(self, name: str, question: str, default: str | None = None) -> str:
        """One answer; at a terminal one that can't be used is asked for again. With "" as default it may be left out.

        Raises:
            UsageError: the flag can't be used, or nobody can be asked and there is no default.
        """
        flag = _flag(name)
        self._used.add(name)
        if given := self._given.get(name):
            return _usable(name, given, flag)
        if self._asks:
            return ask(question, default, lambda said: _usable(name, said))
        if default is None:
            said = f"Give {', '.join(self._missing) or flag}: there is no terminal to ask at."
            if "--model" in self._missing and not self._given.get("tokenizer"):
                said += " For a model of Model Garden (publisher/model@version) give --tokenizer, too."
            raise click.UsageError(said)
        return default

    def refuse_unused(self, when: str) -> None:
        """Make sure that every flag that was given has its place in the config.

        Args:
            when: what made them needless, for the message.

        Raises:
            UsageError: some have none.
        """
        if idle := [_flag(name) for name, given in self._given.items() if given and name not in self._used]:
            raise click.UsageError(f"{', '.join(idle)}: not for {when}; leave it out.")


def ask(question: str, default: str | None, usable: Callable[[str], str]) -> str:
    """An answer from the terminal; one that can't be used is asked for again, with what was wrong.

    Args:
        default: what Enter means; "" for nothing, None where an answer is needed.
        usable: makes the answer what is written. Raises UsageError for one that can't be.
    """

    def value(said: str) -> str:
        if not said and default is None:
            raise click.UsageError("an answer is needed here; Ctrl-C leaves, and writes nothing.")
        return usable(said) if said else ""

    return str(click.prompt(question, default=default or "", show_default=bool(default), err=True, value_proc=value))


def _flag(name: str) -> str:
    return "--" + name.replace("_", "-")


def _usable(name: str, answer: str, flag: str = "") -> str:
    pattern, wanted = FORMS.get(name, (r"\S.*", "a value"))
    if not (re.fullmatch(pattern, answer) or (name == "tokenizer" and Path(answer).is_dir())):
        said = [flag] if flag else []
        if name not in UNSHOWN:
            said.append(repr(answer))
        raise click.UsageError(f"{' '.join(said) or name}: it must be {wanted}.")
    return answer
