"""The few calls on Cloud Storage that `PipelineJob.submit()` makes to have a bucket for the job's artifacts.

Buckets are folders here (see `Jobs.bucket_folder`) that come with the job, so a look-up answers "not there yet" and
making one always works. The client then does not ask a third system, which can't be redirected, for the owner.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from typing import Any

from starlette.requests import Request
from starlette.routing import Route

from eagle_bench.local_vertex.refusals import Refusal

Handler = Callable[[Request], Awaitable[dict[str, Any]]]


def bucket_routes(api: Callable[[str, str, Handler], Route]) -> list[Route]:
    """Routes for clients with STORAGE_EMULATOR_HOST set to this server."""
    bucket = "/storage/v1/b/{bucket}"
    return [
        api("GET", bucket, _look_up),
        api("POST", "/storage/v1/b", _make),
        api("GET", f"{bucket}/iam", _policy),
        api("PUT", f"{bucket}/iam", _policy),
    ]


async def _look_up(request: Request) -> dict[str, Any]:
    raise Refusal(404, f"The specified bucket does not exist: {request.path_params['bucket']}.")


async def _make(request: Request) -> dict[str, Any]:
    return {"kind": "storage#bucket", "name": (await request.json())["name"]}


async def _policy(request: Request) -> dict[str, Any]:
    return {"kind": "storage#policy", "resourceId": request.path_params["bucket"], "version": 1, "bindings": []}
