"""Fan out over variants and concurrency levels, fan in, compare, tear down.

    ExitHandler(teardown_all)
        stage_data →
        for each variant, side by side:       a nested pipeline
            deploy_endpoint → smoke_test → for each level that it gives, one after another: benchmark → collect
            teardown                          as soon as the variant is measured, whatever happened
        compare → conclude

Staging comes first: data or a tokenizer that can't be had then costs no machine. A nested pipeline for
each variant, because the local runner mixes up the items of nested loops.

`eagle_benchmark_of_urls` is the same without what Kubeflow Pipelines has on Vertex AI alone: it measures what runs
already, so nothing is torn down and no task asks how the run ended.
"""

from typing import Any, List, NamedTuple

from eagle_bench.components.benchmark import benchmark
from eagle_bench.components.collect import collect
from eagle_bench.components.compare import compare, conclude
from eagle_bench.components.deploy_endpoint import deploy_endpoint
from eagle_bench.components.smoke_test import smoke_test
from eagle_bench.components.stage_data import stage_data
from eagle_bench.components.teardown import teardown, teardown_all
from kfp import dsl

RUN_ID = dsl.PIPELINE_JOB_ID_PLACEHOLDER
NO_PROJECT = "none"  # a URL is looked up nowhere


class Measured(NamedTuple):
    """What comes of one variant: its results, and what could not be deleted."""

    summary: dsl.Dataset
    left: List[str]


# The compiler runs a pipeline's function where it is defined, so its parts stand first.


def _staged(
    workload: Any,
    tokenizer: Any,
    hf_token_secret: Any,
    concurrency: Any,
    repeats: Any,
    max_hours: Any,
    earlier: Any,
) -> Any:
    staged = stage_data(
        workload=workload,
        tokenizer=tokenizer,
        hf_token_secret=hf_token_secret,
        concurrency=concurrency,
        repeats=repeats,
        max_hours=max_hours,
        earlier=earlier,
    )
    return staged.set_caching_options(False)  # the data set behind an address can change


def _levels(
    project: Any,
    location: Any,
    variant: Any,
    workload: Any,
    criteria: Any,
    concurrency: Any,
    repeats: Any,
    prompts: Any,
) -> Any:
    """One variant's endpoint, each level of it, and the results of all levels in one artifact."""
    deployed = deploy_endpoint(project=project, location=location, run_id=RUN_ID, variant=variant, prompts=prompts)
    deployed.set_caching_options(False)
    checked = smoke_test(
        run_id=RUN_ID,
        variant=variant,
        concurrency=concurrency,
        endpoint=deployed.outputs["endpoint"],
        prompts=prompts,
    )
    checked.set_caching_options(False)
    # What can't answer is not measured: no container is started for its levels.
    with dsl.ParallelFor(checked.outputs["Output"], parallelism=1, name="concurrency") as level:
        measured = benchmark(
            run_id=RUN_ID,
            variant=variant,
            workload=workload,
            criteria=criteria,
            concurrency=level,
            repeats=repeats,
            endpoint=deployed.outputs["endpoint"],
            prompts=prompts,
        )
        measured.set_caching_options(False)
        # The client must not be the bottleneck.
        measured.set_cpu_request("8").set_cpu_limit("8").set_memory_request("16G").set_memory_limit("16G")
    collected = collect(cells=dsl.Collected(measured.outputs["cell"]), checked=checked.outputs["checked"])
    return collected.set_caching_options(False)


def _answer(
    environment: Any,
    variants: Any,
    concurrency: Any,
    baseline: Any,
    criteria: Any,
    earlier: Any,
    summaries: Any,
    left: Any,
) -> None:
    compared = compare(
        run_id=RUN_ID,
        environment=environment,
        variants=variants,
        concurrency=concurrency,
        baseline=baseline,
        criteria=criteria,
        earlier=earlier,
        summaries=summaries,
        left=left,
    )
    compared.set_caching_options(False)
    conclude(comparison=compared.outputs["comparison"]).set_caching_options(False)


@dsl.pipeline(name="benchmark-variant", description="Deploys one variant, measures it level by level, gives it back.")
def benchmark_variant(
    project: str,
    location: str,
    variant: dict,
    workload: dict,
    criteria: dict,
    concurrency: List[int],
    repeats: int,
    prompts: dsl.Input[dsl.Dataset],
) -> Measured:
    collected = _levels(project, location, variant, workload, criteria, concurrency, repeats, prompts)
    given_back = teardown(project=project, location=location, run_id=RUN_ID, variant=variant)
    given_back.after(collected).ignore_upstream_failure().set_caching_options(False)
    return Measured(collected.outputs["summary"], given_back.output)


@dsl.pipeline(name="benchmark-url", description="Measures what runs at one URL, level by level.")
def benchmark_url(
    variant: dict,
    workload: dict,
    criteria: dict,
    concurrency: List[int],
    repeats: int,
    prompts: dsl.Input[dsl.Dataset],
) -> dsl.Dataset:
    collected = _levels(NO_PROJECT, NO_PROJECT, variant, workload, criteria, concurrency, repeats, prompts)
    return collected.outputs["summary"]


@dsl.pipeline(
    name="eagle-benchmark",
    description="Does EAGLE speculative decoding pay on these endpoints, and up to which concurrency?",
)
def eagle_benchmark(
    project: str,
    location: str,
    variants: List[dict],
    baseline: str,
    concurrency: List[int],
    repeats: int,
    workload: dict,
    criteria: dict,
    environment: dict,
    tokenizer: str = "",
    hf_token_secret: str = "",
    max_hours: float = 0.0,
    earlier: dict = {},  # noqa: B006 (the pipeline's default, never changed)
):
    guard = teardown_all(project=project, location=location, run_id=RUN_ID, variants=variants)
    guard.set_caching_options(False)
    with dsl.ExitHandler(guard, name="give everything back"):
        staged = _staged(workload, tokenizer, hf_token_secret, concurrency, repeats, max_hours, earlier)
        with dsl.ParallelFor(variants, name="variant") as variant:
            measured = benchmark_variant(
                project=project,
                location=location,
                variant=variant,
                workload=workload,
                criteria=criteria,
                concurrency=concurrency,
                repeats=repeats,
                prompts=staged.outputs["prompts"],
            )
        summaries, left = dsl.Collected(measured.outputs["summary"]), dsl.Collected(measured.outputs["left"])
        _answer(environment, variants, concurrency, baseline, criteria, earlier, summaries, left)


@dsl.pipeline(
    name="eagle-benchmark",
    description="Does EAGLE speculative decoding pay on the servers at these URLs, and up to which concurrency?",
)
def eagle_benchmark_of_urls(
    variants: List[dict],
    baseline: str,
    concurrency: List[int],
    repeats: int,
    workload: dict,
    criteria: dict,
    environment: dict,
    tokenizer: str = "",
    hf_token_secret: str = "",
    max_hours: float = 0.0,
    earlier: dict = {},  # noqa: B006 (the pipeline's default, never changed)
):
    staged = _staged(workload, tokenizer, hf_token_secret, concurrency, repeats, max_hours, earlier)
    with dsl.ParallelFor(variants, name="variant") as variant:
        measured = benchmark_url(
            variant=variant,
            workload=workload,
            criteria=criteria,
            concurrency=concurrency,
            repeats=repeats,
            prompts=staged.outputs["prompts"],
        )
    _answer(environment, variants, concurrency, baseline, criteria, earlier, dsl.Collected(measured.output), [])
