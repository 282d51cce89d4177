"""Google's client without its import of everything: the same classes, a part of the modules, all of them when they are wanted."""

from __future__ import annotations

import subprocess
import sys
import textwrap

import pytest


def run(code: str) -> str:
    done = subprocess.run([sys.executable, "-c", textwrap.dedent(code)], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    return done.stdout


def test_the_names_are_those_of_the_whole_package():
    said = run(
        """
        from eagle_bench.adapters import lean_google
        lean_google.install()
        from google.cloud import aiplatform_v1
        lean = {name: getattr(aiplatform_v1, name) for name in lean_google.DEFINED_IN}
        assert not lean_google.is_whole()
        aiplatform_v1.JobServiceClient
        assert lean_google.is_whole()
        print([name for name, found in lean.items() if getattr(aiplatform_v1, name) is not found])
        """
    )
    assert said.strip() == "[]"


@pytest.mark.parametrize(
    "use",
    [
        "from google.cloud.aiplatform_v1 import CustomJob",
        "from google.cloud.aiplatform_v1.types import CustomJob",
        "from google.cloud.aiplatform_v1 import types; types.CustomJob",
        "from google.cloud.aiplatform_v1 import *; CustomJob",
        "from google.cloud.aiplatform_v1.types import *; CustomJob",
        "from google.cloud.aiplatform_v1.services import job_service; job_service.JobServiceClient",
        "from google.cloud import aiplatform; aiplatform.PipelineJob",
        "import google.cloud.aiplatform_v1 as a; assert not hasattr(a, 'Nonsense'); a.CustomJob",
    ],
)
def test_who_wants_more_gets_more(use):
    run(f"from eagle_bench.adapters import lean_google\nlean_google.install()\n{use}")


def test_threads_that_want_different_parts_at_once_get_them():
    run(
        """
        from concurrent.futures import ThreadPoolExecutor
        from eagle_bench.adapters import lean_google
        lean_google.install()
        from google.cloud import aiplatform_v1
        names = ["CustomJob", "EndpointServiceClient", "JobServiceClient", "Model", "DatasetServiceClient", "Study"] * 4
        with ThreadPoolExecutor(24) as threads:
            found = list(threads.map(lambda name: getattr(aiplatform_v1, name), names))
        assert [one.__name__ for one in found] == names
        """
    )


def test_a_package_that_is_there_already_is_left_alone():
    run(
        """
        from google.cloud import aiplatform_v1
        from eagle_bench.adapters import lean_google
        lean_google.install()
        assert lean_google.is_whole()
        aiplatform_v1.CustomJob
        """
    )


def test_a_variants_whole_life_needs_no_more(server):
    run(
        """
        from eagle_bench.adapters import lean_google, vertex
        from eagle_bench.serving import Serving
        from eagle_bench.variants import VariantSpec
        place = vertex.Place("p", "us-central1")
        spec = VariantSpec(id="base", model="o/m", serving=Serving(image="tiny", invoke_route=True, request_timeout_s=900))
        made = vertex.deploy(place, "run", spec)
        assert vertex.metrics_url(made.endpoint)
        assert len(vertex.leftovers(place)) == 2
        assert len(vertex.teardown(place, "run", "base").deleted) == 2
        assert not lean_google.is_whole()
        """
    )
