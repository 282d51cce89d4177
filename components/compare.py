"""From cells to an answer."""

from typing import List

from eagle_bench.components._image import image_of
from kfp import dsl


@dsl.component(base_image=image_of("compare"), install_kfp_package=False)
def compare(
    run_id: str,
    environment: dict,
    variants: List[dict],
    concurrency: List[int],
    baseline: str,
    criteria: dict,
    earlier: dict,
    summaries: dsl.Input[List[dsl.Dataset]],
    left: List[List[str]],
    comparison: dsl.Output[dsl.Dataset],
    report: dsl.Output[dsl.HTML],
    summary: dsl.Output[dsl.Markdown],
    metrics: dsl.Output[dsl.Metrics],
):
    """Compares every variant with the baseline, level by level, and writes the report.

    Args:
        run_id: Id of the run.
        environment: Where and with what the run was made, as the report shows it.
        variants: The variants that were planned.
        concurrency: The levels that were planned.
        baseline: Id of the variant that the others are compared with.
        criteria: Largest failure rate, price, SLO.
        earlier: The cells that an earlier run has measured; empty for none.
        summaries: The results, one artifact for each variant.
        left: What each variant's teardown could not delete.
        comparison: The whole answer, `comparison.json`.
        report: The report for people.
        summary: The answer in short.
        metrics: The answer's numbers.
    """
    from eagle_bench.tasks.compare import compare

    compare(
        run_id,
        environment,
        variants,
        concurrency,
        baseline,
        criteria,
        earlier,
        summaries,
        left,
        comparison,
        report,
        summary,
        metrics,
    )


@dsl.component(base_image=image_of("conclude"), install_kfp_package=False)
def conclude(comparison: dsl.Input[dsl.Dataset]):
    """Fails the run if nothing in it can support an answer. The report is kept by then.

    Args:
        comparison: The whole answer.
    """
    from eagle_bench.tasks.compare import conclude

    conclude(comparison)
