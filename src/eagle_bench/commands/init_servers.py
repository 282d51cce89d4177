"""What `init` asks first at a terminal where no flag says it: whether servers run already, and at which URLs."""

from __future__ import annotations

import re
import sys
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import partial

import click

from eagle_bench.commands.init_answers import ask

NEUTRAL = {"tokenizer", "dataset"}  # flags that go with both
URLS, DEPLOY = {"urls", "url", "u", "yes", "y"}, {"deploy", "d", "no", "n"}
AN_ADDRESS = re.compile(r"\S+[:/.]\S*")

Checked = Callable[[str, str], str]
"""Takes an id and a URL, and gives the URL; raises UsageError for one that can't be used."""


@dataclass(frozen=True)
class Servers:
    """Servers that run already; the first one's URL may have been given in place of a word."""

    checked: Checked
    first_url: str | None = None

    def complete(self) -> list[tuple[str, str]]:
        """Ask for what is missing of two servers: the id and the URL of each."""
        found: list[tuple[str, str]] = []

        def usable(said: str) -> str:
            if said in [name for name, _ in found]:
                raise click.UsageError(f"{said!r} is the first server's; give another id.")
            return _id(said)

        for which, usual in (("first", "baseline"), ("second", "eagle3")):
            name = ask(f"Id of the {which} server", usual, usable)
            url = None if found else self.first_url
            url = url or ask("Its URL, such as http://127.0.0.1:8000/v1", None, partial(self.checked, name))
            found.append((name, url))
        return found


def wanted(given: Mapping[str, str | None], checked: Checked) -> Servers | None:
    """Ask for servers where somebody is there and no flag speaks of a deployment or its place; None: a deployment."""
    if not sys.stdin.isatty() or any(value for name, value in given.items() if name not in NEUTRAL):
        return None

    def choice(said: str) -> str:
        if AN_ADDRESS.fullmatch(said):
            return checked("baseline", said)
        word = said.lower()
        if word not in URLS | DEPLOY:
            raise click.UsageError(f"{said!r}: it must be urls or deploy, or the first server's URL.")
        return word

    said = ask("Compare servers that run already, or deploy a model? [urls/deploy]", None, choice)
    return None if said in DEPLOY else Servers(checked, None if said in URLS else said)


def _id(said: str) -> str:
    from pydantic import ValidationError

    from eagle_bench.config import Variant

    try:
        return Variant(id=said).id
    except ValidationError:  # not said again: a URL with a key in it may stand here
        raise click.UsageError(
            f"an id is {Variant.model_fields['id'].description}. The URL is asked for next."
        ) from None
