"""What `init` asks first at a terminal where no flag says it: whether servers run already, and at which URLs."""

from __future__ import annotations

import sys
from collections.abc import Callable, Mapping
from functools import partial

import click

from eagle_bench.commands.init_answers import ask

NEUTRAL = {"tokenizer", "dataset"}  # flags that go with both


def wanted(given: Mapping[str, str | None]) -> bool:
    """Whether to ask for servers: somebody is there, and no flag speaks of a deployment or its place."""
    if not sys.stdin.isatty() or any(value for name, value in given.items() if name not in NEUTRAL):
        return False
    question = "Compare servers that run already (enter their URLs), or deploy a model? [urls/deploy]"
    return ask(question, None, _choice) == "urls"


def urls(checked: Callable[[str, str], str]) -> list[tuple[str, str]]:
    """Two servers, each with its id.

    Args:
        checked: takes an id and a URL, and gives the URL; raises UsageError for one that can't be used.
    """
    found: list[tuple[str, str]] = []

    def unlike(said: str) -> str:
        if said in [name for name, _ in found]:
            raise click.UsageError(f"{said!r} is the first server's; give another id.")
        return said

    for which, usual in (("first", "baseline"), ("second", "eagle3")):
        name = ask(f"Id of the {which} server", usual, unlike)
        url = ask("Its URL, such as http://127.0.0.1:8000/v1", None, partial(checked, name))
        found.append((name, url))
    return found


def _choice(said: str) -> str:
    if said not in ("urls", "deploy"):
        raise click.UsageError(f"{said!r}: it must be urls or deploy.")
    return said
