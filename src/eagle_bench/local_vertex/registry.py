"""The API's calls on endpoints and models: Model Garden's deploy, lists, changes, undeploy, delete."""

from __future__ import annotations

import json
from collections.abc import Awaitable, Callable, Mapping
from typing import Any, TypeVar

from starlette.requests import Request

from eagle_bench.local_vertex.deployments import Deployments
from eagle_bench.local_vertex.faults import Faults, Kind
from eagle_bench.local_vertex.operations import Operation, Operations
from eagle_bench.local_vertex.refusals import Refusal, not_found
from eagle_bench.local_vertex.resources import Endpoint, Model, listing

Resource = TypeVar("Resource")


class Registry:
    """Answers requests about endpoints and models."""

    def __init__(self, deployments: Deployments, operations: Operations, faults: Faults) -> None:
        self._deployments, self._operations, self._faults = deployments, operations, faults

    async def deploy(self, request: Request) -> dict[str, Any]:
        place, body = _place(request), await _json(request)
        self._deployments.check(place, body)
        endpoint, model = self._deployments.make(place, body)
        operation = self._operations.begin(
            place,
            _version(request),
            metadata_type="DeployOperationMetadata",
            response_type="DeployResponse",
            extra_metadata={
                "publisherModel": model.source,
                "destination": place,
                "modelId": model.name.rsplit("/", 1)[-1],
            },
        )
        self._operations.run(operation, self._deployments.deploy(operation, body, endpoint, model))
        return operation.as_json()

    async def get_publisher_model(self, request: Request) -> dict[str, Any]:
        publisher, model = request.path_params["publisher"], request.path_params["model"]
        if not self._deployments.knows(f"{publisher}/{model}"):
            raise Refusal(404, f"Publisher Model publishers/{publisher}/models/{model} is not found.")
        return {"name": f"publishers/{publisher}/models/{model}", "versionId": "1", "launchStage": "GA"}

    async def list_endpoints(self, request: Request) -> dict[str, Any]:
        found = [endpoint.as_json() for endpoint in self._in(request, self._deployments.endpoints)]
        return listing("endpoints", found, dict(request.query_params))

    async def get_endpoint(self, request: Request) -> dict[str, Any]:
        return self._endpoint(request).as_json()

    async def patch_endpoint(self, request: Request) -> dict[str, Any]:
        endpoint, change = self._endpoint(request), await _json(request)
        endpoint.labels = dict(change.get("labels", endpoint.labels))
        endpoint.display_name = change.get("displayName") or endpoint.display_name
        return endpoint.as_json()

    async def update_endpoint(self, request: Request) -> dict[str, Any]:
        """The long-running update, which changes the inference time-out and nothing else."""
        endpoint, body = self._endpoint(request), await _json(request)
        change = body.get("endpoint", body)
        timeout_s = float(str(change.get("clientConnectionConfig", {}).get("inferenceTimeout", "600s")).rstrip("s"))
        if not 0 < timeout_s <= 3600:
            raise Refusal(400, "inference_timeout must be between 0 and 3600 s.")
        endpoint.inference_timeout_s = timeout_s
        answer = {key: value for key, value in endpoint.as_json().items() if key in {"name", "displayName"}}
        return self.finished(request, "UpdateEndpointOperationMetadata", "Endpoint", answer)

    async def undeploy(self, request: Request) -> dict[str, Any]:
        endpoint, body = self._endpoint(request), await _json(request)
        self._ordered("undeploy-fails", endpoint.name)
        deployed = endpoint.deployed
        if deployed is None or deployed["id"] != str(body.get("deployedModelId")):
            raise not_found(f"{endpoint.name}/deployedModels/{body.get('deployedModelId')}")

        async def work() -> dict[str, Any]:
            await self._deployments.stop_engine(endpoint)
            return {}

        return self._work(request, "UndeployModelOperationMetadata", "UndeployModelResponse", work)

    async def delete_endpoint(self, request: Request) -> dict[str, Any]:
        endpoint = self._endpoint(request)
        self._ordered("delete-endpoint-fails", endpoint.name)
        if endpoint.deployed or endpoint.engine:
            raise Refusal(
                400, f"Endpoint {endpoint.name} has deployed models: undeploy them first.", status="FAILED_PRECONDITION"
            )
        del self._deployments.endpoints[endpoint.name]
        return self.finished(request, "DeleteOperationMetadata", "google.protobuf.Empty")

    async def list_models(self, request: Request) -> dict[str, Any]:
        found = [model.as_json() for model in self._in(request, self._deployments.models)]
        return listing("models", found, dict(request.query_params))

    async def get_model(self, request: Request) -> dict[str, Any]:
        return self._model(request).as_json()

    async def patch_model(self, request: Request) -> dict[str, Any]:
        model, change = self._model(request), await _json(request)
        model.labels = dict(change.get("labels", model.labels))
        model.display_name = change.get("displayName") or model.display_name
        return model.as_json()

    async def delete_model(self, request: Request) -> dict[str, Any]:
        model = self._model(request)
        self._ordered("delete-model-fails", model.name)
        if any(endpoint.deployed and endpoint.deployed["model"] == model.name for endpoint in self._all_endpoints()):
            raise Refusal(400, f"Model {model.name} is deployed: undeploy it first.", status="FAILED_PRECONDITION")
        del self._deployments.models[model.name]
        return self.finished(request, "DeleteOperationMetadata", "google.protobuf.Empty")

    def finished(
        self, request: Request, metadata_type: str, response_type: str, response: dict[str, Any] | None = None
    ) -> dict[str, Any]:
        """An operation that is done as it begins."""
        operation = self._begin(request, metadata_type, response_type)
        operation.response = response or {}
        return operation.as_json()

    def _work(
        self,
        request: Request,
        metadata_type: str,
        response_type: str,
        work: Callable[[], Awaitable[dict[str, Any]]],
    ) -> dict[str, Any]:
        operation = self._begin(request, metadata_type, response_type)

        async def run() -> dict[str, Any]:
            return await work()

        self._operations.run(operation, run())
        return operation.as_json()

    def _begin(self, request: Request, metadata_type: str, response_type: str) -> Operation:
        return self._operations.begin(
            _place(request), _version(request), metadata_type=metadata_type, response_type=response_type
        )

    def _ordered(self, kind: Kind, name: str) -> None:
        if fault := self._faults.strike(kind, name):
            raise Refusal(fault.status, fault.message)

    def _all_endpoints(self) -> list[Endpoint]:
        return list(self._deployments.endpoints.values())

    def _endpoint(self, request: Request) -> Endpoint:
        name = f"{_place(request)}/endpoints/{request.path_params['endpoint']}"
        if name not in self._deployments.endpoints:
            raise not_found(name)
        return self._deployments.endpoints[name]

    def _model(self, request: Request) -> Model:
        name = f"{_place(request)}/models/{request.path_params['model'].split('@')[0]}"
        if name not in self._deployments.models:
            raise not_found(name)
        return self._deployments.models[name]

    def _in(self, request: Request, resources: Mapping[str, Resource]) -> list[Resource]:
        return [resource for name, resource in resources.items() if name.startswith(f"{_place(request)}/")]


def _place(request: Request) -> str:
    return "projects/{project}/locations/{location}".format(**request.path_params)


def _version(request: Request) -> str:
    version = request.path_params["version"]
    return "v1" if version == "ui" else str(version)


async def _json(request: Request) -> dict[str, Any]:
    try:
        body = json.loads(await request.body() or b"{}")
    except ValueError:
        raise Refusal(400, "Invalid JSON payload received.") from None
    if not isinstance(body, dict):
        raise Refusal(400, "Invalid JSON payload received.")
    return body
