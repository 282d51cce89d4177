"""Endpoints and models: what they are, as JSON, and how lists of them are filtered."""

from __future__ import annotations

import asyncio
import re
from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import Any

from eagle_bench.local_vertex.operations import now
from eagle_bench.local_vertex.processes import KeptProcess
from eagle_bench.local_vertex.refusals import Refusal


@dataclass
class Model:
    """A model in the registry."""

    name: str
    display_name: str
    source: str
    container_spec: dict[str, Any]
    labels: dict[str, str] = field(default_factory=dict)
    create_time: str = field(default_factory=now)

    def as_json(self) -> dict[str, Any]:
        spec = {key: value for key, value in self.container_spec.items() if key != "env"}
        return {
            "name": self.name,
            "displayName": self.display_name,
            "labels": self.labels,
            "createTime": self.create_time,
            "updateTime": self.create_time,
            "versionId": "1",
            "containerSpec": spec,
        }


@dataclass
class RunningEngine:
    """The process behind an endpoint, and how it is reached."""

    process: KeptProcess
    address: str
    served_model: str


@dataclass
class Endpoint:
    """An endpoint, with the engine of the model that is deployed to it."""

    name: str
    display_name: str
    dedicated: bool
    dns: str
    description: str = ""
    labels: dict[str, str] = field(default_factory=dict)
    create_time: str = field(default_factory=now)
    inference_timeout_s: float = 600.0
    deployed: dict[str, Any] | None = None
    invoke_route: bool = False
    engine: RunningEngine | None = None
    holds_slot: bool = False
    busy: asyncio.Lock = field(default_factory=asyncio.Lock)

    def as_json(self) -> dict[str, Any]:
        answer: dict[str, Any] = {
            "name": self.name,
            "displayName": self.display_name,
            "description": self.description,
            "labels": self.labels,
            "createTime": self.create_time,
            "updateTime": self.create_time,
            "deployedModels": [self.deployed] if self.deployed else [],
            "trafficSplit": {self.deployed["id"]: 100} if self.deployed else {},
            "clientConnectionConfig": {"inferenceTimeout": f"{self.inference_timeout_s:g}s"},
        }
        if self.dedicated:
            answer |= {"dedicatedEndpointEnabled": True, "dedicatedEndpointDns": self.dns}
        return answer


CLAUSE = re.compile(r'(?P<key>[\w.-]+)\s*(?P<op>!=|=|:)\s*(?P<value>"[^"]*"|\S+)')


def matches(resource: dict[str, Any], expression: str) -> bool:
    """Whether a resource passes a list's filter: `labels.KEY=VALUE`, `labels.KEY:*`, `display_name="…"`, with AND.

    Raises:
        Refusal: 400, the filter is none of these.
    """
    for clause in re.split(r"\s+AND\s+|\s+and\s+", expression.strip()) if expression.strip() else []:
        found = CLAUSE.fullmatch(clause.strip())
        if not found:
            raise Refusal(400, f"Invalid filter: {clause!r}.")
        key, value = found["key"], found["value"].strip('"')
        have = _value(resource, key)
        same = have is not None if found["op"] == ":" and value == "*" else have == value
        if same == (found["op"] == "!="):
            return False
    return True


def _value(resource: dict[str, Any], key: str) -> str | None:
    first, _, label = key.partition(".")
    if first == "labels":
        found: str | None = resource.get("labels", {}).get(label)
        return found
    name = re.sub(r"_(\w)", lambda part: part[1].upper(), key)
    if name not in {"displayName", "name", "endpoint", "model", "state", "createTime", "pipelineName"}:
        raise Refusal(400, f"Invalid filter: unknown field {key!r}.")
    value = resource.get("name" if name in {"endpoint", "model"} else name)
    return value.rsplit("/", 1)[-1] if isinstance(value, str) and name in {"endpoint", "model"} else value


def listing(key: str, resources: Iterable[dict[str, Any]], query: dict[str, str]) -> dict[str, Any]:
    """A page of a list: newest first, filtered, `pageSize` long."""
    kept = [resource for resource in resources if matches(resource, query.get("filter", ""))]
    kept.sort(key=lambda resource: str(resource["createTime"]), reverse=True)
    start, size = int(query.get("pageToken") or 0), int(query.get("pageSize") or 100)
    page: dict[str, Any] = {key: kept[start : start + size]}
    if start + size < len(kept):
        page["nextPageToken"] = str(start + size)
    return page
