"""Where a secret is that must not be: files, the words of a run, argument lists and environments of processes."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Mapping
from pathlib import Path

ACCESS_TOKEN = re.compile(rb"local\.[\w-]{43}")
ASSERTION = re.compile(rb"eyJ[\w-]{20,}\.eyJ[\w-]{20,}\.[\w-]{20,}")
HUB_TOKEN_OF_USER, HUB_TOKEN_OF_SECRET = "hf_planted_in_the_environment", "hf_planted_in_secret_manager"


class SecretSearch:
    """Looks for the planted Hugging Face tokens, access tokens, assertions and the service account's key.

    Args:
        key_file: the service account's.
        kept: files that hold secrets and nothing else.
    """

    def __init__(self, key_file: Path, kept: frozenset[Path]) -> None:
        key = json.loads(key_file.read_text())["private_key"].splitlines()
        self._kept = kept | {key_file}
        self._plain = {
            "the user's HF_TOKEN": HUB_TOKEN_OF_USER.encode(),
            "the Hugging Face token of Secret Manager": HUB_TOKEN_OF_SECRET.encode(),
            "the service account's key": key[len(key) // 2].encode(),
        }

    def in_text(self, text: bytes) -> Iterator[str]:
        """The names of the secrets that a text holds."""
        yield from (name for name, secret in self._plain.items() if secret in text)
        yield from (
            name for name, form in (("an access token", ACCESS_TOKEN), ("an assertion", ASSERTION)) if form.search(text)
        )

    def in_files(self, folder: Path) -> Iterator[str]:
        """Secrets in any file below a folder."""
        for path in folder.rglob("*"):
            if path.is_file() and not path.is_symlink() and path not in self._kept:
                yield from (f"{name} in {path.relative_to(folder)}" for name in self.in_text(path.read_bytes()))

    def in_process(self, words: list[str], environment: Mapping[str, str]) -> Iterator[str]:
        """Secrets in an argument list, or in the environment of a process that has no need of them."""
        yield from (f"{name} in the arguments of {shown(words)}" for name in self.in_text(" ".join(words).encode()))
        for name in self.in_text(" ".join(environment.values()).encode()):
            if not (name == "the user's HF_TOKEN" and _hands_on(words)) and not (
                name == "the Hugging Face token of Secret Manager" and _serves(words)
            ):
                yield f"{name} in the environment of {shown(words)}"


def shown(words: list[str]) -> str:
    """A process for messages: its task, or the first of its words."""
    return task_of(words) or " ".join(word[:60] for word in words[:5])


def task_of(words: list[str]) -> str | None:
    """The component's function that a process of the pipeline runs, or whose shell it is."""
    return words[words.index("--function_to_execute") + 1] if "--function_to_execute" in words[:-1] else None


def _hands_on(words: list[str]) -> bool:
    """Whether a process needs the user's token: to stage data, or to hand it on to who does."""
    return task_of(words) == "stage_data" or any("eagle_bench.local_vertex" in word for word in words)


def _serves(words: list[str]) -> bool:
    """Whether it is an engine (or its keeper), which loads the weights of a gated model."""
    return any(word.endswith("tiny_engine.py") for word in words)
