"""Waiting for Vertex AI's long-running operations: through lost connections, up to a time-out, until a signal."""

from __future__ import annotations

import signal
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from types import FrameType
from typing import Any

from eagle_bench.adapters.vertex_address import Place
from eagle_bench.adapters.vertex_errors import HINTS, kind_of, told
from eagle_bench.errors import ServiceError, because

PATIENCE_S = 300.0
CALL_TIMEOUT_S = 60.0
HTTP_STATUS = {1: 499, 3: 400, 4: 504, 5: 404, 6: 409, 7: 403, 8: 429, 9: 400, 13: 500, 14: 503, 16: 401}


def wait(
    client: Any,
    name: str,
    *,
    doing: str,
    poll_s: float,
    timeout_s: float,
    on_poll: Callable[[float, Any], None] = lambda elapsed_s, operation: None,
) -> Any:
    """Wait for an operation by name; returns it (`google.longrunning.Operation`), done and without an error.

    Args:
        client: a generated client of the service that began it.
        doing: what is waited for, for messages: "deploy x".
        on_poll: called after each look, with the seconds waited so far and the operation, None if it was not to be had.

    Raises:
        ServiceError: it failed, or was not done in time ("timeout"), or could not be asked about for long.
    """
    began = heard = time.monotonic()
    while True:
        try:
            with told(f"say how far it is to {doing}"):
                operation = client.get_operation({"name": name}, timeout=CALL_TIMEOUT_S)
            heard = time.monotonic()
        except ServiceError as error:
            operation = None
            # A lost connection or a busy API says nothing about the operation.
            if error.kind not in {"unavailable", "timeout", "quota"} or time.monotonic() - heard > PATIENCE_S:
                raise
        else:
            if operation.done:
                if operation.HasField("error"):
                    raise failed(doing, operation.error.code, operation.error.message)
                return operation
        elapsed_s = time.monotonic() - began
        on_poll(elapsed_s, operation)
        if elapsed_s > timeout_s:
            raise ServiceError(
                f"Vertex AI did not {doing} within {timeout_s:g} s (operation {name}).",
                kind="timeout",
                hint="Allow more time (`serving.deploy_timeout_s`), or look at the endpoint's logs.",
            )
        time.sleep(min(poll_s, max(0.0, timeout_s - elapsed_s) + 0.01))


def failed(doing: str, code: int, message: str) -> ServiceError:
    """The error of an operation, from its google.rpc code and message."""
    kind = kind_of(HTTP_STATUS.get(code), message)
    return ServiceError(because(f"Vertex AI could not {doing}", message), kind=kind, hint=HINTS.get(kind))


def cancel(client: Any, name: str) -> None:
    """Cancel an operation; one that is done or gone is fine.

    Raises:
        ServiceError: it could not be cancelled.
    """
    try:
        with told(f"cancel the operation {name}"):
            client.cancel_operation({"name": name}, timeout=CALL_TIMEOUT_S)
    except ServiceError as error:
        if error.kind != "not-found":
            raise


def deploys_under_way(client: Any, place: Place, name: str) -> tuple[str, ...]:
    """Names of deploy operations that run and make the model with this id.

    Who may not list operations gets none: looking is a convenience for those who retry.

    Raises:
        ServiceError: they can't be listed now.
    """
    from google.api_core import exceptions
    from google.cloud import aiplatform_v1

    metadata = aiplatform_v1.DeployOperationMetadata()  # its type must be known before a list that holds it is read
    try:
        with told("list operations"):
            listed = client.list_operations({"name": str(place)}, timeout=CALL_TIMEOUT_S)
    except ServiceError as error:
        if isinstance(error.__cause__, (exceptions.Forbidden, exceptions.NotFound, exceptions.MethodNotImplemented)):
            return ()
        raise
    found = []
    for operation in listed.operations:
        if not operation.done and operation.metadata.Unpack(metadata._pb) and metadata.model_id == name:
            found.append(str(operation.name))
    return tuple(found)


@contextmanager
def cancelled_unless_done(client: Any, name: str) -> Iterator[None]:
    """Whatever ends the block before its time (an error, Ctrl-C, SIGTERM) cancels the operation, and goes on outwards.

    SIGTERM becomes `SystemExit(143)`, in the main thread only: other threads can't have signal handlers.
    """
    with sigterm_exits():
        try:
            yield
        except BaseException:
            with suppress(ServiceError):  # what ended the block is what people must hear of
                cancel(client, name)
            raise


@contextmanager
def sigterm_exits() -> Iterator[None]:
    """Let SIGTERM unwind the stack as `sys.exit(143)` does, so that cleaning up takes place."""
    if threading.current_thread() is not threading.main_thread():
        yield
        return

    def leave(number: int, _: FrameType | None) -> None:
        raise SystemExit(128 + number)

    before = signal.signal(signal.SIGTERM, leave)
    try:
        yield
    finally:
        signal.signal(signal.SIGTERM, before)
