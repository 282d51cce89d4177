"""One answer before the load."""

from eagle_bench.components._image import image_of
from google_cloud_pipeline_components.types.artifact_types import VertexEndpoint
from kfp import dsl


@dsl.component(base_image=image_of("smoke_test"), install_kfp_package=False)
def smoke_test(
    variant: dict,
    endpoint: dsl.Input[VertexEndpoint],
    checked: dsl.Output[dsl.Artifact],
):
    """Asks the endpoint for a short answer and checks that one comes.

    Args:
        variant: The variant with all its settings.
        endpoint: The endpoint.
        checked: What was asked and answered; holds the failure if there is one.
    """
    from eagle_bench.tasks.smoke import smoke

    smoke(variant, endpoint, checked)
