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
    prompts: dsl.Output[dsl.Dataset],
):
    """Stages disjoint slices of prompts, one for each level, round and warm-up.

    Args:
        workload: Data set, lengths, seed.
        tokenizer: Hugging Face id, gs:// address or folder; empty for none.
        hf_token_secret: Secret Manager resource name of a Hugging Face token; empty for none.
        concurrency: The levels.
        repeats: Rounds of each level.
        prompts: Folder with the manifest, the prompts and the tokenizer's files.
    """
    from pathlib import Path

    from eagle_bench.tasks.stage_data import stage_data as stage

    stage(workload, tokenizer or None, hf_token_secret or None, concurrency, repeats, Path(prompts.path))
