"""`report.html`: one file, no script, no outside address; a pure function of a `Comparison`."""

from __future__ import annotations

from functools import cache
from importlib.resources import files
from typing import TYPE_CHECKING

from eagle_bench import __version__
from eagle_bench.comparison import Comparison
from eagle_bench.report import tables
from eagle_bench.report.markdown import grouped

if TYPE_CHECKING:
    from jinja2 import Template


def render(comparison: Comparison) -> str:
    """The whole report. The same comparison gives the same bytes."""
    return _template().render(
        comparison=comparison,
        style=files("eagle_bench.report").joinpath("report.css").read_text(encoding="utf-8"),
        tables=tables,
        warnings=grouped(comparison),
        version=__version__,
    )


@cache
def _template() -> Template:
    from jinja2 import Environment, StrictUndefined

    environment = Environment(autoescape=True, undefined=StrictUndefined, trim_blocks=True, lstrip_blocks=True)
    source = files("eagle_bench.report").joinpath("report.html.j2").read_text(encoding="utf-8")
    return environment.from_string(source)
