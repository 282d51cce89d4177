"""Prompts and tokenizer, staged once for all variants."""

from typing import List

from eagle_bench.components._image import image_of
from kfp import dsl


@dsl.component(base_image=image_of("stage_data"), install_kfp_package=False)
def stage_data(
    workload: dict,
    tokenizer: str,
    hf_token_secret: str,
    concurrency: List[int],
    repeats: int,
    max_hours: float,
    earlier: dict,
    prompts: dsl.Output[dsl.Dataset],
):
    """Stages disjoint slices of prompts, one for each level, round and warm-up, and starts the run's budget.

    Args:
        workload: Data set, lengths, seed.
        tokenizer: Hugging Face id, gs:// address or folder; empty for none.
        hf_token_secret: Secret Manager resource name of a Hugging Face token; empty for none.
        concurrency: The levels.
        repeats: Rounds of each level.
        max_hours: How long the run may last from now; 0 for no limit.
        earlier: The cells that an earlier run has measured, with the hashes of their prompts; empty for none.
        prompts: Folder with the manifest, the prompts and the tokenizer's files.
    """
    from eagle_bench.tasks.stage_data import stage_run

    stage_run(workload, tokenizer or None, hf_token_secret or None, concurrency, repeats, max_hours, earlier, prompts)
