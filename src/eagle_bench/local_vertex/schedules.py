"""Schedules of pipeline jobs: kept, listed, paused and deleted as on Vertex AI. Nothing runs by them here."""

from __future__ import annotations

import itertools
import json
import re
from typing import Any

from starlette.requests import Request

from eagle_bench.local_vertex.operations import now
from eagle_bench.local_vertex.refusals import Refusal, not_found
from eagle_bench.local_vertex.resources import listing

FIELD = re.compile(r"(\*|\d+|[A-Za-z]{3})(-(\d+|[A-Za-z]{3}))?(/\d+)?")


class Schedules:
    """All schedules of this server."""

    def __init__(self) -> None:
        self._schedules: dict[str, dict[str, Any]] = {}
        self._numbers = itertools.count(1)

    async def create(self, request: Request) -> dict[str, Any]:
        try:
            body = json.loads(await request.body())
        except ValueError:
            raise Refusal(400, "Invalid JSON payload received.") from None
        job = body.get("createPipelineJobRequest", {})
        if not _is_cron(str(body.get("cron", ""))):
            raise Refusal(400, f"Invalid cron expression: {body.get('cron')!r}.")
        if not body.get("displayName") or int(body.get("maxConcurrentRunCount", 0)) < 1:
            raise Refusal(400, "display_name and max_concurrent_run_count are required.")
        if job.get("parent") != _place(request) or "pipelineSpec" not in job.get("pipelineJob", {}):
            raise Refusal(400, "create_pipeline_job_request needs this parent and a pipeline_spec.")
        if job.get("pipelineJobId"):
            raise Refusal(400, "pipeline_job_id must not be set: each run gets an id of its own.")
        name = f"{_place(request)}/schedules/{next(self._numbers)}"
        times = {"createTime": now(), "updateTime": now(), "startTime": body.get("startTime") or now()}
        self._schedules[name] = {**body, "name": name, "state": "ACTIVE", **times}
        return self._schedules[name]

    async def list(self, request: Request) -> dict[str, Any]:
        found = [one for name, one in self._schedules.items() if name.startswith(f"{_place(request)}/")]
        return listing("schedules", found, dict(request.query_params))

    async def get(self, request: Request) -> dict[str, Any]:
        return self._schedules[self._name(request)]

    async def pause(self, request: Request) -> dict[str, Any]:
        self._schedules[self._name(request)] |= {"state": "PAUSED", "lastPauseTime": now()}
        return {}

    async def resume(self, request: Request) -> dict[str, Any]:
        self._schedules[self._name(request)] |= {"state": "ACTIVE", "lastResumeTime": now()}
        return {}

    def delete(self, request: Request) -> None:
        """Forget one; the answer is an operation that is done."""
        del self._schedules[self._name(request)]

    def _name(self, request: Request) -> str:
        name = f"{_place(request)}/schedules/{request.path_params['schedule']}"
        if name not in self._schedules:
            raise not_found(name)
        return name


def _is_cron(text: str) -> bool:
    fields = re.sub(r"^(CRON_)?TZ=\S+\s+", "", text).split()
    return len(fields) == 5 and all(FIELD.fullmatch(part) for field in fields for part in field.split(","))


def _place(request: Request) -> str:
    return "projects/{project}/locations/{location}".format(**request.path_params)
