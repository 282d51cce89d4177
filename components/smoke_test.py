"""One answer before the load."""

from typing import List

from eagle_bench.components._image import image_of
from google_cloud_pipeline_components.types.artifact_types import VertexEndpoint
from kfp import dsl


@dsl.component(base_image=image_of("smoke_test"), install_kfp_package=False)
def smoke_test(
    run_id: str,
    variant: dict,
    concurrency: List[int],
    endpoint: dsl.Input[VertexEndpoint],
    prompts: dsl.Input[dsl.Dataset],
    checked: dsl.Output[dsl.Artifact],
) -> List[int]:
    """Asks the endpoint for a short answer, and gives the levels to measure if one comes.

    Args:
        run_id: Id of the run.
        variant: The variant with all its settings.
        concurrency: The levels of the run.
        endpoint: The endpoint.
        prompts: The staged prompts; they know how long the run may last.
        checked: What was asked and answered; holds the failure if there is one.

    Returns:
        The levels to measure; 0 alone for none.
    """
    from eagle_bench.tasks.smoke import smoke

    return smoke(run_id, variant, concurrency, endpoint, prompts, checked)
