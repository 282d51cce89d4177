"""`report.html`: one file, no script, no outside address; a pure function of a `Comparison`."""

from __future__ import annotations

import hashlib
from dataclasses import dataclass
from functools import cache
from importlib.resources import files
from typing import TYPE_CHECKING

from eagle_bench import __version__
from eagle_bench.comparison import Comparison, Decision
from eagle_bench.cost import largest_meeting_slo
from eagle_bench.plain_text import plain, plain_if_text
from eagle_bench.report import charts, setup_tables, speedup_chart, svg, tables
from eagle_bench.report.findings import CODE, Finding, grouped, together
from eagle_bench.units import conjunction, count, levels, milliseconds

if TYPE_CHECKING:
    from jinja2 import Template
    from markupsafe import Markup

_WORDS = {True: ("yes", "Yes"), False: ("no", "No"), None: ("open", "Can't tell")}


@dataclass(frozen=True)
class Answer:
    """A decision as the page shows it: the sentence up to its colon large, the rest below."""

    variant: str
    tone: str
    word: str
    head: str
    tail: str

    @classmethod
    def of(cls, decision: Decision) -> Answer:
        tone, word = _WORDS[decision.turn_on]
        head, _, tail = decision.text.partition(": ")
        return cls(decision.variant, tone, word, head, tail[:1].upper() + tail[1:])


def render(comparison: Comparison) -> str:
    """The whole report. The same comparison gives the same bytes."""
    return _template().render(
        comparison=comparison,
        style=files("eagle_bench.report").joinpath("report.css").read_text(encoding="utf-8"),
        answers=[Answer.of(decision) for decision in _ranked(comparison)],
        facts=_facts(comparison),
        best=_best(comparison),
        reasons=_reasons(comparison),
        tables=tables,
        setup_tables=setup_tables,
        speedup=speedup_chart.speedup(comparison),
        charts=charts,
        slo=_slo(comparison),
        warnings=grouped(comparison),
        digest=hashlib.sha256(comparison.model_dump_json().encode()).hexdigest(),
        series=len(svg.SERIES),
        version=__version__,
    )


def _ranked(comparison: Comparison) -> list[Decision]:
    """The decisions, those that say yes first, the furthest-reaching of them before the others."""
    order = {True: 0, None: 1, False: 2}
    return sorted(comparison.decisions, key=lambda d: (order[d.turn_on], -(d.up_to_concurrency or 0)))


def _facts(comparison: Comparison) -> list[tuple[str, str]]:
    """What was compared, in few words."""
    cells = [cell for cell in comparison.cells if cell.metrics is not None]
    requested = sorted({cell.counts.requested for cell in cells})
    rounds = sorted({len(cell.rounds) for cell in cells if cell.rounds})
    others = [tables.name(comparison, v) for v in comparison.plan.candidates]
    facts = [
        ("Baseline", tables.name(comparison, comparison.baseline)),
        ("Against it", conjunction(others) if others else "nothing"),
        ("Concurrency", levels(comparison.levels)),
    ]
    if comparison.plan.baseline_again in comparison.variants:
        facts.append(("The baseline once more", tables.name(comparison, str(comparison.plan.baseline_again))))
    if requested:
        spread = f"{requested[0]}" if len(requested) == 1 else f"{requested[0]} to {requested[-1]}"
        repeated = f" in {count(rounds[-1], 'round')}" if rounds and rounds[-1] > 1 else ""
        facts.append(("Requests a level", f"{spread}{repeated}"))
    sources = sorted({cell.token_source for cell in cells if cell.token_source})
    if sources:
        said = {"usage": "the server's usage", "tokenizer": "the tokenizer", "mixed": "both in one cell"}
        facts.append(("Tokens counted by", conjunction([said[source] for source in sources])))
    shapes = sorted({cell.settings.shape for cell in cells if cell.settings and cell.settings.shape})
    if shapes:
        facts.append(("Workload", conjunction(shapes)))
    return facts


def _reasons(comparison: Comparison) -> list[tuple[str, str]]:
    """Why levels are open or out, with what would settle them."""
    found: list[Finding] = []
    for level in comparison.comparisons:
        if level.verdict in ("inconclusive", "invalid"):
            more = f"; about {count(level.more_prompts, 'more prompt')} would settle it" if level.more_prompts else ""
            # With the text for a kind only equal ones are one: bounds of several levels in a sentence can't be read.
            said = [f"{reason}{more}" for reason in level.reasons]
            found += [Finding(text, level.variant, level.concurrency, text) for text in said]
    return together(found)


def _best(comparison: Comparison) -> list[tuple[str, str]]:
    """Which variant is best where, for more than two variants."""
    if len(comparison.variants) <= 2:
        return []
    open_levels = {each.concurrency for each in comparison.comparisons if each.verdict in ("inconclusive", "invalid")}
    found: dict[str, list[int]] = {}
    for level in comparison.best:
        if not level.variants and level.concurrency in open_levels:
            said = "can't tell: no variant is surely faster, and some may be"
        elif not level.variants:
            said = f"{comparison.baseline} (output tokens come faster from no other)"
        elif len(level.variants) == 1:
            said = level.variants[0]
        else:
            said = f"{conjunction(list(level.variants))} (no difference could be shown between them)"
        found.setdefault(said, []).append(level.concurrency)
    return [(f"Concurrency {levels(where)}", said) for said, where in found.items()]


def _slo(comparison: Comparison) -> list[str]:
    """How far each variant keeps the objective."""
    plan = comparison.plan
    if plan.slo_ttft_ms is None and plan.slo_tpot_ms is None:
        return []
    said = []
    for variant in comparison.variants:
        views = sorted((v for v in comparison.views if v.variant == variant), key=lambda view: view.concurrency)
        largest = largest_meeting_slo(views)
        beyond = next((view for view in views if not view.meets_slo), None)
        known = "" if beyond is None or beyond.meets_slo is False else f"; not known at {beyond.concurrency}"
        if largest:
            said.append(f"{variant}: kept up to concurrency {largest}{known}")
        else:
            said.append(f"{variant}: {'not known' if known else 'not kept'} at the lowest level")
    return said


def sentence(text: str) -> Markup:
    """A sentence with what stands in backticks as code."""
    from markupsafe import Markup, escape

    parts = CODE.split(plain(text))
    code = Markup("<code>{}</code>")
    return Markup("").join(code.format(part) if place % 2 else escape(part) for place, part in enumerate(parts))


@cache
def _template() -> Template:
    from jinja2 import Environment, StrictUndefined

    environment = Environment(
        autoescape=True, undefined=StrictUndefined, trim_blocks=True, lstrip_blocks=True, finalize=plain_if_text
    )
    environment.filters["ms"] = milliseconds
    environment.filters["sentence"] = sentence
    source = files("eagle_bench.report").joinpath("report.html.j2").read_text(encoding="utf-8")
    return environment.from_string(source)
