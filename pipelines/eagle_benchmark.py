"""Fan out over variants and concurrency levels, fan in, compare, tear down.

    ExitHandler(teardown_all)
        stage_data →
        for each variant, side by side:       a nested pipeline
            deploy_endpoint → smoke_test → for each level, one after another: benchmark → collect
            teardown                          as soon as the variant is measured, whatever happened
        compare → conclude

Staging comes first: data or a tokenizer that can't be had then costs no machine. A nested pipeline for
each variant, because the local runner mixes up the items of nested loops.
"""

from typing import List

from eagle_bench.components.benchmark import benchmark
from eagle_bench.components.collect import collect
from eagle_bench.components.compare import compare, conclude
from eagle_bench.components.deploy_endpoint import deploy_endpoint
from eagle_bench.components.smoke_test import smoke_test
from eagle_bench.components.stage_data import stage_data
from eagle_bench.components.teardown import teardown, teardown_all
from kfp import dsl

RUN_ID = dsl.PIPELINE_JOB_ID_PLACEHOLDER


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
) -> dsl.Dataset:
    deployed = deploy_endpoint(project=project, location=location, run_id=RUN_ID, variant=variant)
    deployed.set_caching_options(False)
    checked = smoke_test(variant=variant, endpoint=deployed.outputs["endpoint"])
    checked.set_caching_options(False)
    with dsl.ParallelFor(concurrency, parallelism=1, name="concurrency") as level:
        measured = benchmark(
            run_id=RUN_ID,
            variant=variant,
            workload=workload,
            criteria=criteria,
            concurrency=level,
            repeats=repeats,
            endpoint=deployed.outputs["endpoint"],
            checked=checked.outputs["checked"],
            prompts=prompts,
        )
        measured.set_caching_options(False)
        # The client must not be the bottleneck.
        measured.set_cpu_request("8").set_cpu_limit("8").set_memory_request("16G").set_memory_limit("16G")
    collected = collect(cells=dsl.Collected(measured.outputs["cell"]))
    collected.set_caching_options(False)
    given_back = teardown(project=project, location=location, run_id=RUN_ID, variant=variant)
    given_back.after(collected).ignore_upstream_failure().set_caching_options(False)
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
):
    guard = teardown_all(project=project, location=location, run_id=RUN_ID, variants=variants)
    guard.set_caching_options(False)
    with dsl.ExitHandler(guard, name="give everything back"):
        staged = stage_data(
            workload=workload,
            tokenizer=tokenizer,
            hf_token_secret=hf_token_secret,
            concurrency=concurrency,
            repeats=repeats,
        )
        staged.set_caching_options(False)  # the data set behind an address can change
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
        compared = compare(
            run_id=RUN_ID,
            environment=environment,
            variants=variants,
            concurrency=concurrency,
            baseline=baseline,
            criteria=criteria,
            summaries=dsl.Collected(measured.output),
        )
        compared.set_caching_options(False)
        conclude(comparison=compared.outputs["comparison"]).set_caching_options(False)
