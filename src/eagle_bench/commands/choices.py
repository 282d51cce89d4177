"""A value that must be one of a few words."""

from __future__ import annotations

from typing import Any

import click

from eagle_bench.nearest import did_you_mean


class Choice(click.Choice[str]):
    """As click's, and one that can't be used is told the nearest that can."""

    def get_invalid_choice_message(self, value: Any, ctx: click.Context | None) -> str:
        return f"{super().get_invalid_choice_message(value, ctx)}{did_you_mean(str(value), self.choices)}"
