"""The machines go back."""

from typing import List

from eagle_bench.components._image import image_of
from kfp import dsl


@dsl.component(base_image=image_of("teardown"), install_kfp_package=False)
def teardown(project: str, location: str, run_id: str, variant: dict) -> List[str]:
    """Deletes one variant's endpoint and model as soon as it is measured, whatever happened before.

    What can't be deleted is said, and the run goes on: it ends with another attempt.

    Args:
        project: Project of the endpoint.
        location: Region of the endpoint.
        run_id: Id of the run; the endpoint's id is derived from it.
        variant: The variant; one that the run did not deploy is left alone.

    Returns:
        What could not be deleted, with the command that does it.
    """
    from eagle_bench.tasks.teardown import teardown

    return teardown(project, location, run_id, variant)


@dsl.component(base_image=image_of("teardown_all"), install_kfp_package=False)
def teardown_all(
    project: str,
    location: str,
    run_id: str,
    variants: List[dict],
    status: dsl.PipelineTaskFinalStatus,
):
    """Deletes whatever is left of a run when it ends, however it ends; fails if it can't.

    Args:
        project: Project of the endpoints.
        location: Region of the endpoints.
        run_id: Id of the run.
        variants: All variants of the run.
        status: How the run ended.
    """
    from eagle_bench.tasks.teardown import teardown_all

    teardown_all(project, location, run_id, variants, status.state)
