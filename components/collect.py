"""The levels of one variant in one artifact."""

from typing import List

from eagle_bench.components._image import image_of
from kfp import dsl


@dsl.component(base_image=image_of("collect"), install_kfp_package=False)
def collect(
    cells: dsl.Input[List[dsl.Dataset]],
    checked: dsl.Input[dsl.Artifact],
    summary: dsl.Output[dsl.Dataset],
):
    """Puts the results of all levels of one variant into one file.

    Args:
        cells: The results, one for each level.
        checked: Result of the smoke test, with the levels that were not measured for it.
        summary: One result a line.
    """
    from eagle_bench.tasks.collect import collect

    collect(cells, checked, summary)
