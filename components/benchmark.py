"""One endpoint under one concurrency."""

from eagle_bench.components._image import image_of
from google_cloud_pipeline_components.types.artifact_types import VertexEndpoint
from kfp import dsl


@dsl.component(base_image=image_of("benchmark"), install_kfp_package=False)
def benchmark(
    run_id: str,
    variant: dict,
    workload: dict,
    criteria: dict,
    concurrency: int,
    repeats: int,
    endpoint: dsl.Input[VertexEndpoint],
    prompts: dsl.Input[dsl.Dataset],
    cell: dsl.Output[dsl.Dataset],
    metrics: dsl.Output[dsl.Metrics],
):
    """Measures an endpoint at one concurrency with vLLM's benchmark client.

    Args:
        run_id: Id of the run.
        variant: The variant with all its settings.
        workload: Lengths, time-outs, seed.
        criteria: Largest failure rate, SLO.
        concurrency: Requests in flight; 0 to do nothing.
        repeats: Rounds, each with prompts of its own.
        endpoint: The endpoint.
        prompts: The staged prompts; they know how long the run may last.
        cell: The result, `cell.json`.
        metrics: Its headline numbers.
    """
    from eagle_bench.tasks.benchmark import benchmark

    benchmark(
        run_id,
        variant,
        workload,
        criteria,
        concurrency,
        repeats,
        endpoint,
        prompts,
        cell,
        metrics,
    )
