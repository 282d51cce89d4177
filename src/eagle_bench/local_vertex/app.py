"""The routes of Local Vertex: what Google's clients call, answered from this machine."""

from __future__ import annotations

import asyncio
import base64
import contextlib
import json
import logging
from collections.abc import AsyncIterator, Mapping
from typing import Any
from urllib.parse import parse_qsl

from pydantic import ValidationError
from starlette.applications import Starlette
from starlette.requests import Request
from starlette.responses import JSONResponse, Response
from starlette.routing import Route

from eagle_bench.local_vertex.accounts import Accounts
from eagle_bench.local_vertex.buckets import Handler, bucket_routes
from eagle_bench.local_vertex.deployments import Deployments
from eagle_bench.local_vertex.faults import Fault, Faults
from eagle_bench.local_vertex.gateway import Gateway
from eagle_bench.local_vertex.jobs import Jobs
from eagle_bench.local_vertex.machines import Machine
from eagle_bench.local_vertex.metadata import Contexts
from eagle_bench.local_vertex.operations import Operations
from eagle_bench.local_vertex.refusals import Refusal
from eagle_bench.local_vertex.registry import Registry
from eagle_bench.local_vertex.resources import listing
from eagle_bench.local_vertex.schedules import Schedules
from eagle_bench.local_vertex.settings import Settings
from eagle_bench.local_vertex.tokens import Tokens

LOG = logging.getLogger(__name__)
PLACE = "/{version}/projects/{project}/locations/{location}"


class LocalVertexApp:
    """Everything of one server, and the web application that shows it."""

    def __init__(self, settings: Settings, tokens: Tokens, job_environment: Mapping[str, str]) -> None:
        self.tokens, self.faults = tokens, Faults(settings.faults)
        self.machine = Machine(settings.slots, settings.turn_linger_s)
        self.operations = Operations()
        self.deployments = Deployments(settings, self.machine, self.faults)
        self.registry = Registry(self.deployments, self.operations, self.faults)
        self.jobs = Jobs(settings, job_environment)
        self.accounts = Accounts(settings, tokens)
        self.schedules, self.contexts = Schedules(), Contexts()
        self.gateway = Gateway(self.deployments.endpoints, self.machine, tokens, self.faults)
        self._settings = settings

    def build(self) -> Starlette:
        """The web application; its shutdown ends jobs and engines."""
        return Starlette(routes=self._routes(), lifespan=self._lifespan)

    @contextlib.asynccontextmanager
    async def _lifespan(self, _: Starlette) -> AsyncIterator[None]:
        yield
        await self.jobs.stop_all()
        await self.deployments.stop_all()
        await self.gateway.close()

    def _routes(self) -> list[Route]:
        endpoint, model, job = "/endpoints/{endpoint}", "/models/{model}", "/pipelineJobs/{job}"
        schedule, store = "/schedules/{schedule}", "/metadataStores/{store}"
        registry, api = self.registry, self._api
        return [
            Route("/token", self._grant, methods=["POST"]),
            api("GET", "/local/state", self._state),
            api("POST", "/local/first", self._expect),
            api("POST", "/local/faults", self._order_fault),
            api("DELETE", "/local/faults", self._clear_faults),
            api("POST", "/local/tokens:revoke", self._revoke),
            *self.accounts.routes(api),
            *bucket_routes(api, self.jobs.bucket_folder),
            api("GET", "/v1/projects/{project}/secrets/{secret}/versions/{number}:access", self._secret),
            Route(f"{PLACE}{endpoint}/chat/completions", self.gateway, methods=["POST"]),
            Route(f"{PLACE}{endpoint}/invoke/{{route:path}}", self.gateway, methods=["GET", "POST"]),
            api("GET", "/v1/publishers/{publisher}/models/{model}", registry.get_publisher_model),
            api("POST", f"{PLACE}:deploy", registry.deploy),
            api("GET", f"{PLACE}/endpoints", registry.list_endpoints),
            api("POST", f"{PLACE}{endpoint}:undeployModel", registry.undeploy),
            api("PATCH", f"{PLACE}{endpoint}", registry.patch_endpoint),
            api("POST", f"{PLACE}{endpoint}:update", registry.update_endpoint),
            api("GET", f"{PLACE}{endpoint}", registry.get_endpoint),
            api("DELETE", f"{PLACE}{endpoint}", registry.delete_endpoint),
            api("GET", f"{PLACE}/models", registry.list_models),
            api("GET", f"{PLACE}{model}", registry.get_model),
            api("PATCH", f"{PLACE}{model}", registry.patch_model),
            api("DELETE", f"{PLACE}{model}", registry.delete_model),
            api("POST", f"{PLACE}/pipelineJobs", self._create_job),
            api("GET", f"{PLACE}/pipelineJobs", self._list_jobs),
            api("POST", f"{PLACE}{job}:cancel", self._cancel_job),
            api("GET", f"{PLACE}{job}", self._get_job),
            api("DELETE", f"{PLACE}{job}", self._delete_job),
            api("POST", f"{PLACE}/schedules", self.schedules.create),
            api("GET", f"{PLACE}/schedules", self.schedules.list),
            api("POST", f"{PLACE}{schedule}:pause", self.schedules.pause),
            api("POST", f"{PLACE}{schedule}:resume", self.schedules.resume),
            api("GET", f"{PLACE}{schedule}", self.schedules.get),
            api("DELETE", f"{PLACE}{schedule}", self._delete_schedule),
            api("GET", f"{PLACE}{store}", self.contexts.store),
            api("POST", f"{PLACE}{store}/contexts", self.contexts.create),
            api("POST", f"{PLACE}{store}/contexts/{{context}}:addContextChildren", self.contexts.add_children),
            api("GET", f"{PLACE}{store}/contexts/{{context}}", self.contexts.get),
            api("GET", f"{PLACE}/operations", self._list_operations),
            api("POST", f"{PLACE}/{{path:path}}:cancel", self._cancel_operation),
            api("POST", f"{PLACE}/{{path:path}}:wait", self._wait_operation),
            api("GET", f"{PLACE}/{{path:path}}", self._get_operation),
            api("DELETE", f"{PLACE}/{{path:path}}", self._delete_operation),
            api("GET", "/{path:path}", _unknown),
        ]

    def _api(self, method: str, path: str, handler: Handler) -> Route:
        """A route that wants a valid token and answers errors as Google does."""

        async def answer(request: Request) -> Response:
            try:
                self.tokens.check(request.headers.get("authorization"), assertions=True)
                self._ordered_status(request)
                found = await handler(request)
                return found if isinstance(found, Response) else JSONResponse(found)
            except Refusal as refusal:
                return JSONResponse(refusal.body(), status_code=refusal.code)
            except Exception as error:  # a request that nobody thought of: answered, and kept for its fault's sake
                LOG.exception("%s %s", request.method, request.url.path)
                return JSONResponse(Refusal(500, f"{type(error).__name__}: {error}").body(), status_code=500)

        return Route(path, answer, methods=[method])

    def _ordered_status(self, request: Request) -> None:
        if fault := self.faults.strike("api-status", f"{request.method} {request.url.path}"):
            raise Refusal(fault.status, fault.message)

    async def _grant(self, request: Request) -> Response:
        if fault := self.faults.strike("token-server-down", "/token"):
            return JSONResponse({"error": "internal_failure", "error_description": fault.message}, fault.status)
        try:
            return JSONResponse(self.tokens.grant(dict(parse_qsl((await request.body()).decode()))))
        except Refusal as refusal:
            return JSONResponse({"error": "invalid_grant", "error_description": refusal.message}, refusal.code)

    async def _state(self, _: Request) -> dict[str, Any]:
        """What a person, or a progress display, wants to know and Vertex AI's API has no place for."""
        return {
            "slots": self.machine.slots,
            "mode": self.machine.mode,
            "state_dir": str(self._settings.state_dir),
            "artifacts": {job.name: str(job.artifacts) for job in self.jobs.jobs.values() if job.artifacts},
            "logs": {job.name: str(job.folder.resolve()) for job in self.jobs.jobs.values()},
            "operations": {
                op.name: op.progress for op in self.operations.under("projects") if not op.as_json()["done"]
            },
        }

    async def _expect(self, request: Request) -> dict[str, Any]:
        """Which endpoint is to have a machine before all others that have none yet."""
        self.machine.expect(str(json.loads(await request.body())["endpoint"]))
        return {}

    async def _order_fault(self, request: Request) -> dict[str, Any]:
        try:
            self.faults.order(Fault.model_validate_json(await request.body()))
        except ValidationError as error:
            raise Refusal(400, str(error)) from None
        return {}

    async def _clear_faults(self, _: Request) -> dict[str, Any]:
        self.faults.clear()
        return {}

    async def _revoke(self, _: Request) -> dict[str, Any]:
        self.tokens.revoke_all()
        return {}

    async def _secret(self, request: Request) -> dict[str, Any]:
        name = "projects/{project}/secrets/{secret}/versions/{number}".format(**request.path_params)
        file = self._settings.secrets.get(name)
        if file is None:
            raise Refusal(404, f"Secret [{name}] not found: Local Vertex was told of no file for it.")
        return {"name": name, "payload": {"data": base64.b64encode(file.read_bytes()).decode()}}

    async def _create_job(self, request: Request) -> dict[str, Any]:
        try:
            body = json.loads(await request.body())
        except ValueError:
            raise Refusal(400, "Invalid JSON payload received.") from None
        return self.jobs.create(place_of(request), request.query_params.get("pipelineJobId", ""), body).as_json()

    async def _get_job(self, request: Request) -> dict[str, Any]:
        return self.jobs.get(_job(request)).as_json()

    async def _list_jobs(self, request: Request) -> dict[str, Any]:
        prefix = f"{place_of(request)}/"
        found = [job.as_json() for name, job in self.jobs.jobs.items() if name.startswith(prefix)]
        return listing("pipelineJobs", found, dict(request.query_params))

    async def _cancel_job(self, request: Request) -> dict[str, Any]:
        self.jobs.cancel(_job(request))
        return {}

    async def _delete_job(self, request: Request) -> dict[str, Any]:
        await self.jobs.delete(_job(request))
        return self.registry.finished(request, "DeleteOperationMetadata", "google.protobuf.Empty")

    async def _delete_schedule(self, request: Request) -> dict[str, Any]:
        self.schedules.delete(request)
        return self.registry.finished(request, "DeleteOperationMetadata", "google.protobuf.Empty")

    async def _list_operations(self, request: Request) -> dict[str, Any]:
        return {"operations": [operation.as_json() for operation in self.operations.under(place_of(request))]}

    async def _get_operation(self, request: Request) -> dict[str, Any]:
        name = _operation(request)
        operation = self.operations.get(name)
        if self.faults.strike("operation-garbage", f"{name} {operation.extra_metadata.get('modelId', '')}"):
            return {"name": name, "done": True, "response": {"@type": "type.googleapis.com/google.protobuf.Empty"}}
        return operation.as_json()

    async def _cancel_operation(self, request: Request) -> dict[str, Any]:
        await self.operations.cancel(_operation(request))
        return {}

    async def _wait_operation(self, request: Request) -> dict[str, Any]:
        timeout_s = float(request.query_params.get("timeout", "60s").rstrip("s"))
        return (await self.operations.wait(_operation(request), min(timeout_s, 600.0))).as_json()

    async def _delete_operation(self, request: Request) -> dict[str, Any]:
        self.operations.delete(_operation(request))
        return {}


def place_of(request: Request) -> str:
    """The `projects/…/locations/…` of a request."""
    return "projects/{project}/locations/{location}".format(**request.path_params)


def _job(request: Request) -> str:
    return f"{place_of(request)}/pipelineJobs/{request.path_params['job']}"


def _operation(request: Request) -> str:
    return f"{place_of(request)}/{request.path_params['path']}"


async def _unknown(request: Request) -> dict[str, Any]:
    await asyncio.sleep(0)
    raise Refusal(404, f"Local Vertex has nothing at {request.url.path}.")
