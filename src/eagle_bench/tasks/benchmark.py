"""One endpoint under one concurrency: staged prompts in, `cell.json` and its headline numbers out."""

from __future__ import annotations

import signal
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from types import FrameType
from typing import TYPE_CHECKING, Any

from eagle_bench.config import Criteria, Workload
from eagle_bench.progress import now_and_then, say
from eagle_bench.report.cell import scalars
from eagle_bench.results import CellResult, CellSettings
from eagle_bench.tasks.budget import Budget, budget_of
from eagle_bench.tasks.failures import failure_of, not_measured
from eagle_bench.variants import NO_LEVEL, VariantSpec
from eagle_bench.workload.prompts import MANIFEST, TOKENIZER, Manifest, read_staged

if TYPE_CHECKING:
    from eagle_bench.adapters.vllm_client.target import Progress

PROGRESS_EVERY_S = 10.0


def benchmark(
    run_id: str,
    variant: dict[str, Any],
    workload: dict[str, Any],
    criteria: dict[str, Any],
    concurrency: int,
    repeats: int,
    endpoint: Any,
    prompts: Any,
    cell: Any,
    metrics: Any,
) -> None:
    """Measure one cell. Whatever goes wrong with the endpoint is in the result, and the run goes on.

    Past the run's budget nothing begins, what runs is cut short, and the variant's machines go back at once.
    At `NO_LEVEL` there is nothing to do, and the file is empty.
    """
    spec = VariantSpec.model_validate(variant)
    load, limits = Workload.model_validate(workload), Criteria.model_validate(criteria)
    level, rounds, budget = int(concurrency), int(repeats), budget_of(prompts)
    if level == NO_LEVEL:
        Path(cell.path).touch()
        return
    with _writing_first() as begun:
        if budget is not None and budget.spent:
            result = not_measured(run_id, spec.id, level, None, budget.failure("benchmark", "not begun"))
        else:
            try:
                result = _measured(run_id, spec, load, limits, level, rounds, endpoint, prompts, budget, begun)
            except Exception as error:  # the other levels and variants are still to be measured
                result = not_measured(run_id, spec.id, level, None, failure_of("benchmark", error))
        Path(cell.path).write_text(result.model_dump_json(), encoding="utf-8")
    cell.metadata["variant"] = spec.id
    cell.metadata["concurrency"] = level
    for name, value in scalars(result).items():
        metrics.log_metric(name, value)
    say(spec.id, _outcome(result))
    if budget is not None and budget.spent:
        _give_back(run_id, spec, endpoint)


@contextmanager
def _writing_first() -> Iterator[Callable[[], None]]:
    """Once there is something to keep (call what comes), SIGTERM ends this process when the block has written it.

    While it measures, the client hears the signal itself and ends in order; this is for the moment after.
    """
    if threading.current_thread() is not threading.main_thread():
        yield lambda: None
        return
    to_be_kept = threading.Event()

    def leave(number: int, _: FrameType | None) -> None:
        if not to_be_kept.is_set():
            raise SystemExit(128 + number)

    before = signal.signal(signal.SIGTERM, leave)
    try:
        yield to_be_kept.set
    finally:
        signal.signal(signal.SIGTERM, before)


def _give_back(run_id: str, spec: VariantSpec, endpoint: Any) -> None:
    from eagle_bench.adapters.vertex import Place
    from eagle_bench.tasks.teardown import give_back

    if resource := endpoint.metadata.get("resourceName"):
        give_back(Place.of(resource), run_id, spec)


def _measured(
    run_id: str,
    spec: VariantSpec,
    load: Workload,
    limits: Criteria,
    concurrency: int,
    rounds: int,
    endpoint: Any,
    prompts: Any,
    budget: Budget | None,
    begun: Callable[[], None],
) -> CellResult:
    from eagle_bench.adapters.vllm_client.measure import measure
    from eagle_bench.tasks.targets import target_of

    folder = Path(prompts.path)
    warmup, measured = read_staged(folder, concurrency)
    tokenizer = folder / TOKENIZER
    slo = limits.slo
    settings = CellSettings(
        max_output_tokens=load.max_output_tokens,
        ignore_eos=load.ignore_eos,
        requests=len(measured),
        rounds=rounds,
        warmup_requests=len(warmup),
        request_timeout_s=load.request_timeout_s,
        max_failure_rate=limits.max_failure_rate,
        seed=load.seed,
        shape=_shape(folder, load),
        store_text=load.store_text,
        precision=load.precision,
        slo_ttft_ms=slo.ttft_ms if slo else None,
        slo_tpot_ms=slo.tpot_ms if slo else None,
    )
    tell = now_and_then(spec.id, PROGRESS_EVERY_S)

    def on_progress(progress: Progress) -> None:
        begun()
        tell(progress)

    measured_cell = measure(
        target_of(spec, endpoint),
        warmup,
        measured,
        variant=spec.id,
        concurrency=concurrency,
        settings=settings,
        tokenizer=tokenizer if tokenizer.is_dir() else None,
        run_id=run_id,
        on_progress=on_progress,
        deadline_s=budget.deadline_s if budget else None,
    )
    machines = endpoint.metadata.get("machines")
    known: dict[str, Any] = {
        "environment": {**measured_cell.environment, **({"machines": machines} if machines else {})}
    }
    if budget is not None and budget.spent and not measured_cell.requests:
        known["failure"] = budget.failure("benchmark", "cut short before the first answer")
    return measured_cell.model_copy(update=known)


def _shape(folder: Path, load: Workload) -> str | None:
    """The label of a workload that is not people's prompts answered to their end."""
    staged = Manifest.model_validate_json((folder / MANIFEST).read_text(encoding="utf-8"))
    labels = [staged.label, "answers of fixed length" if load.ignore_eos else None]
    return ", ".join(label for label in labels if label) or None


def _outcome(result: CellResult) -> str:
    where = f"c={result.concurrency}"
    if result.metrics is None:
        return f"{where} failed: {result.failure.message if result.failure else 'no request succeeded'}"
    tpot = result.metrics.tpot_ms
    shown = f"TPOT {tpot.p50:.1f} ms" if tpot else "no TPOT"
    failed = f", {result.counts.failed} of {result.counts.requested} failed" if result.counts.failed else ""
    return f"{where} done: {shown}, TTFT {result.metrics.ttft_ms.p50:.0f} ms{failed}"
