"""What is sent: prompts from many forms, filtered, and sliced so that no cell sees another's."""

from eagle_bench.workload.cells import cell_prompts
from eagle_bench.workload.slices import stage

__all__ = ["cell_prompts", "stage"]
