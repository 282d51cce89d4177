"""A truth server that ends by itself says so: a refused connection is not the client's fault then."""

from __future__ import annotations

import os
import signal

import pytest

from truth_server.process import TruthServer


def test_a_server_that_was_ended_from_outside_is_named_with_its_status() -> None:
    with pytest.raises(RuntimeError, match="ended by itself, with status -9"), TruthServer() as server:
        os.kill(server.pid, signal.SIGKILL)
        server.wait()
        server.journal()


def test_one_that_a_test_ends_is_no_news() -> None:
    with TruthServer() as server:
        server.kill()
