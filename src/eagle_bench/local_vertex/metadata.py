"""As much of ML Metadata as experiments need: the default store, contexts, and which of them belong to which."""

from __future__ import annotations

import json
from typing import Any

from starlette.requests import Request

from eagle_bench.local_vertex.operations import now
from eagle_bench.local_vertex.refusals import Refusal, not_found


def run_context(place: str, job_id: str) -> dict[str, Any]:
    """The context that Vertex AI makes for a pipeline job."""
    name = f"{place}/metadataStores/default/contexts/{job_id}"
    return {"name": name, "displayName": job_id, "schemaTitle": "system.PipelineRun", "schemaVersion": "0.0.1"}


class Contexts:
    """The contexts that clients made (experiments), and the jobs' contexts that were put into them."""

    def __init__(self) -> None:
        self._made: dict[str, dict[str, Any]] = {}
        self._children: dict[str, list[str]] = {}

    async def store(self, request: Request) -> dict[str, Any]:
        return {"name": _store(request), "createTime": now()}

    async def create(self, request: Request) -> dict[str, Any]:
        name = f"{_store(request)}/contexts/{request.query_params['contextId']}"
        if name in self._made:
            raise Refusal(409, f"Context {name} already exists.")
        self._made[name] = {**json.loads(await request.body()), "name": name, "createTime": now(), "updateTime": now()}
        return self._made[name]

    async def get(self, request: Request) -> dict[str, Any]:
        name = _name(request)
        if name in self._made:
            return self._made[name]
        parents = [parent for parent, children in self._children.items() if name in children]
        if not parents:
            raise not_found(name)
        place, _, _ = name.partition("/metadataStores/")
        return {**run_context(place, request.path_params["context"]), "parentContexts": parents}

    async def add_children(self, request: Request) -> dict[str, Any]:
        name = _name(request)
        if name not in self._made:
            raise not_found(name)
        self._children.setdefault(name, []).extend(json.loads(await request.body())["childContexts"])
        return {}


def _store(request: Request) -> str:
    return "projects/{project}/locations/{location}/metadataStores/{store}".format(**request.path_params)


def _name(request: Request) -> str:
    return f"{_store(request)}/contexts/{request.path_params['context']}"
