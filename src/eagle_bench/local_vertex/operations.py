"""Long-running operations: work that goes on after the answer, asked about by name, cancelled by name."""

from __future__ import annotations

import asyncio
import itertools
from collections.abc import Callable, Coroutine
from dataclasses import dataclass, field
from datetime import UTC, datetime
from typing import Any

from eagle_bench.local_vertex import refusals
from eagle_bench.local_vertex.refusals import Refusal, not_found


def now() -> str:
    """The time as Google's JSON writes it."""
    return datetime.now(UTC).isoformat(timespec="microseconds").replace("+00:00", "Z")


class OperationFailed(Exception):
    """Work of an operation that ends it with an error: a google.rpc code and a message."""

    def __init__(self, code: int, message: str) -> None:
        super().__init__(message)
        self.code, self.message = code, message


@dataclass
class Operation:
    """One operation. Types are named for the API version of the request that began it.

    `trouble` says what keeps it from going on now, "" where nothing does: its partial failure.
    """

    name: str
    version: str
    metadata_type: str
    response_type: str
    create_time: str = field(default_factory=now)
    update_time: str = field(default_factory=now)
    progress: str = ""
    trouble: Callable[[], str] = str
    extra_metadata: dict[str, Any] = field(default_factory=dict)
    response: dict[str, Any] | None = None
    error: dict[str, Any] | None = None
    work: asyncio.Task[None] | None = None

    def report(self, progress: str) -> None:
        """Say what is going on; shown in `/local/state`."""
        self.progress, self.update_time = progress, now()

    def as_json(self) -> dict[str, Any]:
        generic: dict[str, Any] = {"createTime": self.create_time, "updateTime": self.update_time}
        done = self.error is not None or self.response is not None
        if not done and (trouble := self.trouble()):
            generic["partialFailures"] = [{"code": refusals.RESOURCE_EXHAUSTED, "message": trouble}]
        metadata = {"@type": self._type(self.metadata_type), "genericMetadata": generic, **self.extra_metadata}
        answer: dict[str, Any] = {"name": self.name, "metadata": metadata, "done": False}
        if self.error is not None:
            answer |= {"done": True, "error": self.error}
        elif self.response is not None:
            answer |= {"done": True, "response": {"@type": self._type(self.response_type), **self.response}}
        return answer

    def _type(self, name: str) -> str:
        package = name if "." in name else f"google.cloud.aiplatform.{self.version}.{name}"
        return f"type.googleapis.com/{package}"


class Operations:
    """All operations of this server."""

    def __init__(self) -> None:
        self._operations: dict[str, Operation] = {}
        self._numbers = itertools.count(1)

    def begin(
        self,
        place: str,
        version: str,
        *,
        metadata_type: str,
        response_type: str,
        extra_metadata: dict[str, Any] | None = None,
    ) -> Operation:
        """A new operation under `projects/…/locations/…` (or a resource there), without work yet."""
        name = f"{place}/operations/{next(self._numbers)}"
        operation = Operation(name, version, metadata_type, response_type, extra_metadata=extra_metadata or {})
        self._operations[name] = operation
        return operation

    def run(self, operation: Operation, work: Coroutine[Any, Any, dict[str, Any]]) -> None:
        """Let the operation do its work; what the work returns is the operation's response."""
        operation.work = asyncio.create_task(self._run(operation, work), name=operation.name)

    async def _run(self, operation: Operation, work: Coroutine[Any, Any, dict[str, Any]]) -> None:
        try:
            operation.response = await work
        except OperationFailed as failure:
            operation.error = {"code": failure.code, "message": failure.message}
        except asyncio.CancelledError:
            operation.error = {"code": refusals.CANCELLED, "message": "The operation was cancelled."}
        except Exception as error:  # whatever it was: a client that waits must hear of it
            operation.error = {"code": refusals.INTERNAL, "message": f"{type(error).__name__}: {error}"}
            raise
        finally:
            operation.update_time = now()

    def get(self, name: str) -> Operation:
        if name not in self._operations:
            raise not_found(name)
        return self._operations[name]

    def under(self, place: str) -> list[Operation]:
        return [operation for operation in self._operations.values() if operation.name.startswith(f"{place}/")]

    async def cancel(self, name: str) -> None:
        """Cancel it and return when its work has been given up; one that is done stays as it is."""
        work = self.get(name).work
        if work and not work.done():
            work.cancel()
            await asyncio.wait([work])

    async def wait(self, name: str, timeout_s: float) -> Operation:
        operation = self.get(name)
        if operation.work and not operation.work.done():
            await asyncio.wait([operation.work], timeout=timeout_s)
        return operation

    def delete(self, name: str) -> None:
        work = self.get(name).work
        if work and not work.done():
            raise Refusal(400, f"Operation {name} is still running.", status="FAILED_PRECONDITION")
        del self._operations[name]
