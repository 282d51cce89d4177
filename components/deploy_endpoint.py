"""One variant's endpoint."""

from eagle_bench.components._image import image_of
from google_cloud_pipeline_components.types.artifact_types import VertexEndpoint
from kfp import dsl


@dsl.component(base_image=image_of("deploy_endpoint"), install_kfp_package=False)
def deploy_endpoint(
    project: str,
    location: str,
    run_id: str,
    variant: dict,
    prompts: dsl.Input[dsl.Dataset],
    endpoint: dsl.Output[VertexEndpoint],
    gcp_resources: dsl.OutputPath(str),
):
    """Deploys a variant from Model Garden or Hugging Face, or finds the endpoint that it names.

    A deployment that fails is written into the endpoint's metadata; the run goes on with the others.

    Args:
        project: Project of the endpoint.
        location: Region of the endpoint.
        run_id: Id of the run; the endpoint's id is derived from it.
        variant: The variant with all its settings.
        prompts: The staged prompts; they know how long the run may last.
        endpoint: The endpoint.
        gcp_resources: The long-running operation, for the console.
    """
    from eagle_bench.tasks.deploy import deploy

    deploy(project, location, run_id, variant, prompts, endpoint, gcp_resources)
