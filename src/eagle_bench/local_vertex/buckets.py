"""As much of Cloud Storage as a run needs: buckets are folders, objects are files.

A look-up of a bucket answers "not there yet" and making one always works: `PipelineJob.submit()` then does not ask a
third system, which can't be redirected, for the bucket's owner.
"""

from __future__ import annotations

import asyncio
import base64
import hashlib
from collections.abc import Awaitable, Callable
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from starlette.requests import Request
from starlette.responses import FileResponse, Response
from starlette.routing import Route

from eagle_bench.local_vertex.refusals import Refusal

Handler = Callable[[Request], Awaitable["dict[str, Any] | Response"]]


def bucket_routes(api: Callable[[str, str, Handler], Route], folder_of: Callable[[str], Path]) -> list[Route]:
    """Routes for clients with STORAGE_EMULATOR_HOST set to this server; `folder_of` maps gs:// addresses."""
    objects = _Objects(folder_of)
    bucket = "/storage/v1/b/{bucket}"
    return [
        api("GET", bucket, _look_up),
        api("POST", "/storage/v1/b", _make),
        api("GET", f"{bucket}/iam", _policy),
        api("PUT", f"{bucket}/iam", _policy),
        api("GET", f"{bucket}/o", objects.list),
        api("GET", f"{bucket}/o/{{name:path}}", objects.get),
        api("GET", "/download/storage/v1/b/{bucket}/o/{name:path}", objects.download),
    ]


async def _look_up(request: Request) -> dict[str, Any]:
    raise Refusal(404, f"The specified bucket does not exist: {request.path_params['bucket']}.")


async def _make(request: Request) -> dict[str, Any]:
    return {"kind": "storage#bucket", "name": (await request.json())["name"]}


async def _policy(request: Request) -> dict[str, Any]:
    return {"kind": "storage#policy", "resourceId": request.path_params["bucket"], "version": 1, "bindings": []}


class _Objects:
    """Files under a bucket's folder, for reading. Jobs write theirs with the file system."""

    def __init__(self, folder_of: Callable[[str], Path]) -> None:
        self._folder_of = folder_of

    async def list(self, request: Request) -> dict[str, Any]:
        bucket, query = request.path_params["bucket"], request.query_params
        root, prefix = self._folder_of(f"gs://{bucket}"), query.get("prefix", "")
        files = sorted(path for path in root.rglob("*") if path.is_file()) if root.is_dir() else []
        found = [(path, path.relative_to(root).as_posix()) for path in files]
        return {
            "kind": "storage#objects",
            "items": [
                await asyncio.to_thread(self._described, bucket, name, path)
                for path, name in found
                if name.startswith(prefix)
            ],
        }

    async def get(self, request: Request) -> dict[str, Any] | Response:
        if request.query_params.get("alt") == "media":
            return await self.download(request)
        bucket, name = request.path_params["bucket"], request.path_params["name"]
        return await asyncio.to_thread(self._described, bucket, name, self._file(bucket, name))

    async def download(self, request: Request) -> Response:
        bucket, name = request.path_params["bucket"], request.path_params["name"]
        path = self._file(bucket, name)
        described = await asyncio.to_thread(self._described, bucket, name, path)
        return FileResponse(path, headers={"x-goog-hash": f"md5={described['md5Hash']}"})

    def _file(self, bucket: str, name: str) -> Path:
        path = self._folder_of(f"gs://{bucket}/{name}")
        if not path.is_file():
            raise Refusal(404, f"No such object: {bucket}/{name} (on this machine it would be {path}).")
        return path

    @staticmethod
    def _described(bucket: str, name: str, path: Path) -> dict[str, Any]:
        content = path.read_bytes()
        digest = hashlib.md5(content, usedforsecurity=False).digest()
        changed = datetime.fromtimestamp(path.stat().st_mtime, UTC)
        return {
            "kind": "storage#object",
            "bucket": bucket,
            "name": name,
            "size": str(len(content)),
            "md5Hash": base64.b64encode(digest).decode(),
            "generation": str(int(changed.timestamp() * 1e6)),
            "updated": changed.isoformat().replace("+00:00", "Z"),
        }
