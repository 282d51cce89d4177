"""From the cells of all variants to the answer, the report and the console's numbers."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from eagle_bench.adapters.earlier_cells import read_earlier
from eagle_bench.analysis import compare as compare_cells
from eagle_bench.comparison import Comparison, Plan
from eagle_bench.config import Criteria
from eagle_bench.differences import by_variant
from eagle_bench.errors import InputError, NoUsableResult, because
from eagle_bench.progress import say
from eagle_bench.report import html, markdown
from eagle_bench.report.scalars import scalars
from eagle_bench.tasks.collect import collected
from eagle_bench.unreadable import reason
from eagle_bench.variants import VariantSpec


def plan_of(
    variants: Sequence[VariantSpec],
    concurrency: Sequence[int],
    baseline: str,
    criteria: Criteria,
    run: dict[str, str],
    left: Sequence[str] = (),
) -> Plan:
    """What a run set out to measure, with each variant's settings as the report shows them, and what it left."""
    slo = criteria.slo
    return Plan(
        baseline=baseline,
        variants=tuple(spec.id for spec in variants),
        levels=tuple(sorted(int(level) for level in concurrency)),
        labels={spec.id: spec.label for spec in variants if spec.label},
        max_failure_rate=criteria.max_failure_rate,
        price_per_hour=criteria.price_per_hour,
        baseline_again=criteria.baseline_again,
        slo_ttft_ms=slo.ttft_ms if slo else None,
        slo_tpot_ms=slo.tpot_ms if slo else None,
        settings={spec.id: settings_shown(spec) for spec in variants},
        differences=by_variant(variants, baseline, criteria.allow_difference),
        run=run,
        left=tuple(left),
    )


def planned(run_id: str, parameters: Mapping[str, Any]) -> Plan:
    """What a run set out to measure, from the parameters of its pipeline.

    Raises:
        InputError: they are not those of a run of ours.
    """
    try:
        return plan_of(
            [VariantSpec.model_validate(variant) for variant in parameters["variants"]],
            parameters["concurrency"],
            parameters["baseline"],
            Criteria.model_validate(parameters["criteria"]),
            {"run": run_id, **parameters["environment"]},
        )
    except (KeyError, TypeError, ValueError) as error:
        raise InputError(
            f"{run_id}: not a run of this eagle-bench: its parameters can't be read: {reason(error)}."
        ) from None


def settings_shown(spec: VariantSpec) -> dict[str, str]:
    """A variant's settings as a flat table; nothing in it is secret, secrets are named only."""
    shown: dict[str, str] = {}
    if spec.model:
        shown["model"] = spec.model
    if spec.endpoint:
        shown["endpoint"] = spec.endpoint
    if spec.url:
        shown["url"] = spec.url
    if spec.served_model:
        shown["served model"] = spec.served_model
    if serving := spec.serving:
        shown["image"] = serving.image or "Model Garden's own choice"
        shown["machine"] = serving.machine_type
        if serving.accelerator:
            shown["accelerators"] = f"{serving.accelerator.count} × {serving.accelerator.type}"
        if serving.command:
            shown["command"] = " ".join(serving.command)
        shown["arguments"] = " ".join(serving.args) or "none"
        shown |= {f"environment {name}": value for name, value in sorted(serving.env.items())}
    return shown


def compare(
    run_id: str,
    environment: dict[str, str],
    variants: Sequence[dict[str, Any]],
    concurrency: Sequence[int],
    baseline: str,
    criteria: dict[str, Any],
    earlier: dict[str, Any],
    summaries: Sequence[Any],
    left: Sequence[Sequence[str]],
    comparison: Any,
    report: Any,
    summary: Any,
    metrics: Any,
) -> None:
    """Compare what came in, and what was taken from an earlier run, with what was planned; write the answer."""
    plan = plan_of(
        [VariantSpec.model_validate(variant) for variant in variants],
        concurrency,
        baseline,
        Criteria.model_validate(criteria),
        {"run": run_id, **environment},
        tuple(said for of_variant in left for said in of_variant),
    )
    answer = compare_cells(plan, (*collected(summaries), *(kept.cell for kept in read_earlier(earlier))))
    write(answer, Path(comparison.path), Path(report.path), Path(summary.path))
    for name, value in scalars(answer).items():
        metrics.log_metric(name, value)
    for decision in answer.decisions:
        say(decision.variant, decision.text)


def write(answer: Comparison, comparison: Path, report: Path, summary: Path) -> None:
    """Write the answer for machines, for a browser and in short."""
    comparison.write_text(answer.model_dump_json(indent=1), encoding="utf-8")
    report.write_text(html.render(answer), encoding="utf-8")
    summary.write_text(markdown.render(answer), encoding="utf-8")


def conclude(comparison: Any) -> None:
    """Fail the run when nothing in it can support an answer. By then the report is kept.

    Raises:
        NoUsableResult: no level of any variant could be compared.
    """
    require_usable(Comparison.model_validate_json(Path(comparison.path).read_text(encoding="utf-8")))


def require_usable(answer: Comparison) -> None:
    """Refuse an answer in which every level of every variant is invalid.

    Raises:
        NoUsableResult: with the first reason.
    """
    if any(level.verdict != "invalid" for level in answer.comparisons):
        return
    reasons = [reason for level in answer.comparisons for reason in level.reasons]
    raise NoUsableResult(
        because("no usable result", reasons[0] if reasons else "nothing was measured"),
        hint="The report shows what failed and why.",
    )
