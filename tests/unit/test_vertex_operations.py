"""Waiting for an operation of Vertex AI, by a clock that the test moves."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import pytest
from google.longrunning.operations_pb2 import Operation

from eagle_bench.adapters import vertex_operations
from eagle_bench.errors import ServiceError

NAME = "projects/p/locations/us-central1/operations/1"
MINUTE_S = 60.0


class Vertex:
    """Operations that are done after so many seconds of its own clock."""

    def __init__(self, takes_s: float) -> None:
        self.now_s, self.takes_s, self.asked = 0.0, takes_s, 0

    def sleep(self, seconds: float) -> None:
        self.now_s += seconds

    def get_operation(self, request: dict[str, str], timeout: float) -> Operation:
        assert request == {"name": NAME}
        self.asked += 1
        return Operation(name=NAME, done=self.now_s >= self.takes_s)


@pytest.fixture
def wait(monkeypatch: pytest.MonkeyPatch) -> Any:
    def wait(service: Vertex, **arguments: Any) -> Operation:
        clock = SimpleNamespace(monotonic=lambda: service.now_s, sleep=service.sleep)
        monkeypatch.setattr(vertex_operations, "time", clock)
        return vertex_operations.wait(service, NAME, doing="deploy x", poll_s=15, **arguments)

    return wait


def test_a_deploy_of_forty_minutes_is_waited_for(wait: Any) -> None:
    service, heard = Vertex(takes_s=40 * MINUTE_S), []
    assert wait(service, timeout_s=120 * MINUTE_S, on_poll=lambda elapsed_s, _: heard.append(elapsed_s)).done
    assert 40 * MINUTE_S <= service.now_s < 41 * MINUTE_S
    assert service.asked == 161
    assert heard == [15.0 * look for look in range(160)]  # each look is progress for those who wait


def test_one_that_takes_longer_than_is_allowed_is_given_up_in_time_and_by_name(wait: Any) -> None:
    service = Vertex(takes_s=40 * MINUTE_S)
    with pytest.raises(ServiceError) as caught:
        wait(service, timeout_s=30 * MINUTE_S)
    assert caught.value.kind == "timeout"
    assert "within 1800 s" in caught.value.message
    assert NAME in caught.value.message
    assert service.now_s == pytest.approx(30 * MINUTE_S, abs=1)
