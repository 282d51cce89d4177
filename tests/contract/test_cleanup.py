"""`eagle-bench cleanup` against Local Vertex: finds what a run left, deletes only when told to."""

from __future__ import annotations

import json
import subprocess
import sys

import pytest

from eagle_bench.adapters import vertex
from eagle_bench.serving import Serving
from eagle_bench.variants import VariantSpec

PLACE = vertex.Place("local-project", "us-central1")


def cleanup(*arguments):
    command = [sys.executable, "-m", "eagle_bench", "cleanup", "--project", PLACE.project, *arguments]
    return subprocess.run(command, capture_output=True, text=True, check=False)


@pytest.fixture
def left(server):
    """An endpoint and a model that a run made and nobody took away."""
    spec = VariantSpec(id="base", model="some/model", serving=Serving(image="tiny"))
    return vertex.deploy(PLACE, "lost-run", spec)


def test_it_lists_and_deletes_only_when_told_to(left):
    listed = cleanup("lost-run")
    assert listed.returncode == 0
    assert left.endpoint in listed.stdout
    assert left.model in listed.stdout
    assert "nothing deleted" in listed.stdout
    assert len(vertex.leftovers(PLACE)) == 2

    another = cleanup("lost-runs", "--yes").stdout
    assert "nothing is left" in another
    assert "Did you mean `lost-run`?" in another
    assert "nothing is left" in cleanup("--older-than", "6h", "--yes").stdout
    assert len(vertex.leftovers(PLACE)) == 2

    deleted = cleanup("--older-than", "0m", "--yes", "--json")
    assert deleted.returncode == 0, deleted.stderr
    assert f"deleted {left.endpoint}" in deleted.stderr
    said = json.loads(deleted.stdout)
    assert said["deleted"] == [left.endpoint, left.model]
    assert {one["run"] for one in said["found"]} == {"lost-run"}
    assert vertex.leftovers(PLACE) == ()
    assert "nothing is left" in cleanup("lost-run", "--yes").stdout


def test_what_can_not_be_deleted_is_named_with_the_command(left, order):
    order("delete-endpoint-fails", status=403, times=None)
    done = cleanup("lost-run", "--yes")
    assert done.returncode == 1
    assert left.endpoint in done.stderr
    assert "gcloud ai endpoints" in done.stderr


@pytest.mark.parametrize(
    "arguments", [[], ["run", "--older-than", "6h"], ["--older-than", "soon"], ["--older-than", "99999999999999d"]]
)
def test_wrong_usage(arguments):
    done = cleanup(*arguments)
    assert done.returncode == 2
