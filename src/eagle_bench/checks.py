"""What makes a result suspect, as data: a stable code, the numbers, and the next step.

Each check is a generator over what the comparison knows; `warnings` runs them all in the order in which a
reader should see them.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Iterator, Sequence

from eagle_bench import provenance, saturation
from eagle_bench.codes import WarningCode
from eagle_bench.comparison import LevelComparison, Losslessness, Warning
from eagle_bench.comparison_checks import control, drift, possible, side_effects
from eagle_bench.config import least_requests
from eagle_bench.grid import Grid, cut_short
from eagle_bench.losslessness import excess
from eagle_bench.pairing import different_prompts, unproven_prompts
from eagle_bench.results import CellResult
from eagle_bench.settings_checks import shared_host as _hosts
from eagle_bench.settings_checks import unequal_settings as _settings
from eagle_bench.units import count, percent, significant

LENGTH_TOLERANCE = 0.02
ACCEPTANCE_NEAR_ONE = 1.1
_FEW_ROUNDS = 3


def warnings(
    grid: Grid, comparisons: Sequence[LevelComparison], lossless: Sequence[Losslessness]
) -> tuple[Warning, ...]:
    """Everything that makes this result suspect, the gravest first."""
    found: list[Warning] = []
    for check in (
        provenance.not_deleted,
        provenance.budget,
        _presence,
        _failures,
        provenance.earlier_run,
        _settings,
        _hosts,
        _served,
        _prompts,
        _tokens,
        _requests,
        _client,
    ):
        found += check(grid)
    for compared in (control, possible, drift, side_effects):
        found += compared(grid, comparisons)
    found += _acceptance(grid)
    found += _answers(lossless)
    found += _said_by_cells(grid)
    return tuple(found)


def _warn(code: WarningCode, text: str, cell: CellResult | LevelComparison | Losslessness | None = None) -> Warning:
    if cell is None:
        return Warning(code=code, text=text)
    return Warning(code=code, variant=cell.variant, concurrency=cell.concurrency, text=text)


def _presence(grid: Grid) -> Iterator[Warning]:
    for variant, level in grid.planned():
        code: WarningCode
        if (variant, level) in grid.twice:
            code, said = "duplicate_cell", "came in more than once; keep the file that belongs to this run"
        elif (variant, level) not in grid.cells:
            code, said = "missing_cell", "was planned and did not come in; look at that step's log"
        else:
            continue
        yield Warning(code=code, variant=variant, concurrency=level, text=f"{said}.")
    for variant, level in sorted(set(grid.unplanned)):
        text = "is not part of the plan and was left out."
        yield Warning(code="unplanned_cell", variant=variant, concurrency=level, text=text)


def _failures(grid: Grid) -> Iterator[Warning]:
    for key in grid.planned():
        cell = grid.cells.get(key)
        if cell is None:
            continue
        if cell.failure is not None:
            stage = cell.failure.stage.replace("_", " ")
            yield _warn("cell_failed", f"{stage} failed ({cell.failure.kind}): {cell.failure.message}", cell)
        elif cell.counts.failed:
            requested = cell.counts.requested
            share = percent(cell.counts.failed / max(1, requested))
            empty = f", {cell.counts.empty} of them without an answer" if cell.counts.empty else ""
            bodies = [r.error.body for r in cell.requests if r.error and r.error.body]
            said = f" The server said: “{bodies[0][:200]}”." if bodies else ""
            code: WarningCode
            if cell.counts.completed:
                code, advice = (
                    "failures",
                    "Failures are often the long requests, so what is left looks fast: read the server's log.",
                )
            else:
                code, advice = "all_failed", "Nothing was measured: see whether the server is up, then read its log."
            text = f"{cell.counts.failed} of {count(requested, 'request')} failed ({share}{empty}).{said} {advice}"
            yield _warn(code, text, cell)


def _served(grid: Grid) -> Iterator[Warning]:
    """Names of the model as the servers say them; deployments name one model in many ways, so this proves nothing."""
    for baseline, cell in grid.against_baseline():
        names = [found.capabilities and found.capabilities.server_model for found in (baseline, cell)]
        if all(names) and names[0] != names[1]:
            text = (
                f"the server calls its model {names[1]}, the baseline's {names[0]}. Deployments name models freely: make "
                "sure that both are the same one."
            )
            yield _warn("server_model", text, cell)


def _prompts(grid: Grid) -> Iterator[Warning]:
    """Prompts that an endpoint saw more than once, and slices that differ between the variants."""
    for variant in grid.plan.variants:
        homes: dict[str, set[int]] = defaultdict(set)
        repeated = 0
        for level in sorted(grid.plan.levels):
            cell = grid.cells.get((variant, level))
            ids = [request.prompt_id for request in cell.requests] if cell else []
            repeated += len(ids) - len(set(ids))
            for prompt in ids:
                homes[prompt].add(level)
        shared = sum(len(levels) > 1 for levels in homes.values())
        if shared or repeated:
            text = (
                f"{count(shared + repeated, 'prompt')} reached {variant} more than once: a prefix cache answers the second "
                "time, and that is what is measured then. Use more prompts."
            )
            yield Warning(code="prompts_reused", variant=variant, text=text)
    for baseline, cell in grid.against_baseline():
        if different_prompts(baseline, cell):
            yield _warn(
                "different_prompts", "got other prompts than the baseline. Give both the same file and seed.", cell
            )
        elif unproven := unproven_prompts(baseline, cell):
            advice = "Measure both with one tool, on prompts of different lengths, such as a data set of real ones."
            yield _warn("unproven_prompts", f"{unproven}. {advice}", cell)


def _tokens(grid: Grid) -> Iterator[Warning]:
    """Token counts: where they come from, and whether the answers are equally long."""
    for baseline, cell in grid.against_baseline():
        if cut_short(baseline) or cut_short(cell):
            continue
        sources = {baseline.token_source, cell.token_source} - {None}
        if len(sources) > 1 and "mixed" not in sources:
            text = f"tokens are counted by {cell.token_source}, the baseline's by {baseline.token_source}. Use one for both."
            yield _warn("token_source", text, cell)
        rounds = [sorted({request.round for request in found.requests}) for found in (baseline, cell)]
        if all(rounds) and rounds[0] != rounds[1]:
            text = (
                f"has {count(len(rounds[1]), 'round')}, the baseline {len(rounds[0])}: the speed-ups are over the rounds "
                "that both have, but the rates and costs of each cell over its own, other prompts. Measure both in the "
                "same rounds before you compare those."
            )
            yield _warn("rounds_differ", text, cell)
            continue
        lengths = [m.mean_output_tokens for m in (baseline.metrics, cell.metrics) if m and m.mean_output_tokens]
        if len(lengths) == 2 and abs(lengths[1] / lengths[0] - 1) > LENGTH_TOLERANCE:
            text = (
                f"answers have {significant(lengths[1])} tokens on average, the baseline's {significant(lengths[0])} "
                f"({percent(abs(lengths[1] / lengths[0] - 1))} apart; {percent(LENGTH_TOLERANCE)} is noise). The variants do not "
                "do the same work: check the chat template and the sampling settings, and trust TPOT before E2E."
            )
            yield _warn("output_length", text, cell)


def _requests(grid: Grid) -> Iterator[Warning]:
    for cell in grid.whole():
        needed = least_requests(cell.concurrency)
        if cell.counts.completed < needed:
            text = f"{cell.counts.completed} requests completed; at concurrency {cell.concurrency} it takes at least {needed}. Measure more prompts."
            yield _warn("too_few_requests", text, cell)
        if not cell.requests:
            text = "there are only sums, no single requests, so nothing can be paired. Save the results with `--save-detailed`."
            yield _warn("no_details", text, cell)
    # One that had enough after fewer rounds had more planned.
    rounds = [
        max(cell.settings.rounds if cell.settings else 0, len({request.round for request in cell.requests}))
        for cell in grid.whole()
        if cell.requests
    ]
    if rounds and min(rounds) < _FEW_ROUNDS:
        text = (
            f"the cells have {count(min(rounds), 'round')}: drift of the server between rounds is not in the intervals as it "
            f"would be with {_FEW_ROUNDS}. Set `repeats: {_FEW_ROUNDS}` (`bench --rounds {_FEW_ROUNDS}`) or more."
        )
        yield Warning(code="few_rounds", text=text)


def _client(grid: Grid) -> Iterator[Warning]:
    for cell in grid.whole():
        if signs := saturation.signs(cell.client, cell.metrics):
            text = f"the client may have been the bottleneck: {' and '.join(signs)}. Give it more cores, or measure from another machine."
            yield _warn("client_saturated", text, cell)


_BY_CHUNKS = (
    "a chunk of the stream holds {:.2f} tokens, all that is known of acceptance: either drafted tokens are not accepted, "
    "or the server sends accepted tokens one by one. The engine's metrics page would tell."
)


def _acceptance(grid: Grid) -> Iterator[Warning]:
    for cell in grid.whole():
        if cell.acceptance is not None and cell.acceptance.length_of_drafted < ACCEPTANCE_NEAR_ONE:
            if cell.variant not in grid.plan.candidates:
                continue
            if cell.acceptance.source == "chunks":
                yield _warn("acceptance_unknown", _BY_CHUNKS.format(cell.acceptance.length), cell)
                continue
            text = (
                f"the acceptance length is {cell.acceptance.length_of_drafted:.2f} (from {cell.acceptance.source}): almost no drafted "
                "token is accepted. The draft model is broken or belongs to another target: check its path and version."
            )
            yield _warn("acceptance_near_one", text, cell)


def _answers(lossless: Iterable[Losslessness]) -> Iterator[Warning]:
    for found in lossless:
        beyond = excess(found)
        if beyond:
            text = (
                f"{percent(1 - found.identical / found.pairs)} of the answers differ from the baseline's, "
                f"{percent(beyond)} more than the baseline differs from itself. Speculation should not change them: report it."
            )
            yield _warn("not_lossless", text, found)


# By `_client`, `_failures` and `provenance`, with what to do.
_TOLD_ABOVE = ("client_saturated:", "failure_rate:", "budget:")
_GO_ON = "Measure this cell again: `--resume` of `run` or `submit` takes the others as they are."


def _said_by_cells(grid: Grid) -> Iterator[Warning]:
    for cell in grid.good():
        for text in cell.warnings:
            if text.startswith("interrupted:"):
                yield _warn("client", f"{text}. {_GO_ON}", cell)
            elif not text.startswith(_TOLD_ABOVE) and not cut_short(cell):
                yield _warn("client", text, cell)
