"""Model Garden's deploy: a model and an endpoint are made, a machine is waited for, an engine is started."""

from __future__ import annotations

import asyncio
import os
import re
import socket
import zlib
from contextlib import closing
from typing import Any

import httpx

from eagle_bench.local_vertex import refusals
from eagle_bench.local_vertex.faults import Faults
from eagle_bench.local_vertex.machines import Machine
from eagle_bench.local_vertex.operations import Operation, OperationFailed, now
from eagle_bench.local_vertex.processes import KeptProcess
from eagle_bench.local_vertex.refusals import Refusal
from eagle_bench.local_vertex.resources import Endpoint, Model, RunningEngine
from eagle_bench.local_vertex.settings import Engine, Settings

USER_ID = re.compile(r"[a-z]([a-z0-9-]{0,61}[a-z0-9])?|[1-9][0-9]{0,8}")
KEPT_ENVIRONMENT = re.compile(
    r"PATH|HOME|LANG|LC_.*|TMPDIR|USER|CUDA_.*|NVIDIA_.*|LD_LIBRARY_PATH|HF_HOME|XDG_CACHE_HOME"
)


class Deployments:
    """Makes endpoints and models, starts and stops the engines behind them."""

    def __init__(self, settings: Settings, machine: Machine, faults: Faults) -> None:
        self.settings, self.machine, self.faults = settings, machine, faults
        self.endpoints: dict[str, Endpoint] = {}
        self.models: dict[str, Model] = {}
        self._stopping: set[asyncio.Task[None]] = set()

    def check(self, place: str, request: dict[str, Any]) -> None:
        """Refuse what Vertex AI would refuse at once.

        Raises:
            Refusal: with the reason.
        """
        self._ordered_refusal(self._ids(request)[0])
        model = _model_id(request)
        for key, name in zip(("endpoints", "models"), self._ids(request), strict=True):
            if not USER_ID.fullmatch(name):
                raise Refusal(
                    400, f"Invalid user id {name!r}: it must match [a-z][a-z0-9-]* with 63 characters at most."
                )
            if f"{place}/{key}/{name}" in (self.endpoints if key == "endpoints" else self.models):
                raise Refusal(409, f"{key[:-1].capitalize()} {place}/{key}/{name} already exists.")
        engine = self._engine_for(_container(request))
        if engine.needs_model and self.settings.model_folder(model) is None:
            raise Refusal(404, f"Publisher Model {model} is not found on this machine.")

    def knows(self, model: str) -> bool:
        """Whether a model can be deployed here: its folder is known, or no engine wants one."""
        needed = any(engine.needs_model for engine in self.settings.engines.values())
        return not needed or self.settings.model_folder(model) is not None

    def make(self, place: str, request: dict[str, Any]) -> tuple[Endpoint, Model]:
        """The endpoint and the model of a deploy, without an engine yet."""
        endpoint_id, model_id = self._ids(request)
        config, spec = request.get("endpointConfig", {}), _container(request)
        model = Model(
            name=f"{place}/models/{model_id}",
            display_name=request.get("modelConfig", {}).get("modelDisplayName") or model_id,
            source=_model_id(request),
            container_spec=spec,
        )
        location = place.rsplit("/", 1)[-1]
        endpoint = Endpoint(
            name=f"{place}/endpoints/{endpoint_id}",
            display_name=config.get("endpointDisplayName") or endpoint_id,
            description=f"local-vertex machine: {self.machine.mode}",
            dedicated=not config.get("dedicatedEndpointDisabled", False),
            dns=f"{endpoint_id}.{location}-{self.settings.project_number}.prediction.vertexai.goog",
            invoke_route=bool(spec.get("invokeRoutePrefix")),
        )
        self.models[model.name], self.endpoints[endpoint.name] = model, endpoint
        return endpoint, model

    async def deploy(
        self, operation: Operation, request: dict[str, Any], endpoint: Endpoint, model: Model
    ) -> dict[str, Any]:
        """The operation's work. What it made stays when it fails, as on Vertex AI; the machine is given back."""
        if fault := self.faults.strike("operation-fails", endpoint.name):
            raise OperationFailed(refusals.INTERNAL, f"Model server failed to start: {fault.message}.")
        if self.faults.strike("operation-hangs", endpoint.name):
            await asyncio.Event().wait()
        operation.report("waiting for a machine")
        operation.trouble = lambda: self._no_machine(endpoint)
        await self.machine.take_slot(endpoint.name)
        endpoint.holds_slot = True
        try:
            async with self.machine.turn_of(endpoint.name):
                await self._start_engine(operation, request, endpoint, model)
        except BaseException:
            await self.stop_engine(endpoint)
            raise
        endpoint.deployed = {
            "id": str(zlib.crc32(endpoint.name.encode())),
            "model": model.name,
            "displayName": model.display_name,
            "createTime": now(),
            "dedicatedResources": request.get("deployConfig", {}).get("dedicatedResources", {}),
        }
        return {"publisherModel": model.source, "endpoint": endpoint.name, "model": model.name}

    def _no_machine(self, endpoint: Endpoint) -> str:
        """Which endpoints have the machine that this one waits for; "" where it waits for none."""
        others = self.machine.ahead_of(endpoint.name)
        return f"local-vertex machine: in use by {', '.join(others)}" if others else ""

    async def stop_engine(self, endpoint: Endpoint) -> None:
        """End the endpoint's engine and give its machine back, in this order, also where the caller is cancelled."""
        stopping = asyncio.create_task(self._stop_engine(endpoint))
        self._stopping.add(stopping)
        stopping.add_done_callback(self._stopping.discard)
        await asyncio.shield(stopping)

    async def _stop_engine(self, endpoint: Endpoint) -> None:
        engine, endpoint.engine, endpoint.deployed = endpoint.engine, None, None
        if engine:
            await engine.process.stop()
        if endpoint.holds_slot:
            endpoint.holds_slot = False
            self.machine.give_slot_back(endpoint.name)

    async def stop_all(self) -> None:
        await asyncio.gather(*self._stopping, *(self.stop_engine(endpoint) for endpoint in self.endpoints.values()))

    async def _start_engine(
        self, operation: Operation, request: dict[str, Any], endpoint: Endpoint, model: Model
    ) -> None:
        if fault := self.faults.strike("slow-start", endpoint.name):
            await asyncio.sleep(fault.seconds)
        spec = _container(request)
        engine = self._engine_for(spec)
        folder = self.settings.model_folder(model.source)
        port = _free_port()
        args = tuple(self.settings.with_folders(str(arg)) for arg in spec.get("args", ()))
        argv = engine.argv(
            model=str(folder or model.source), served_model=model.source, host="127.0.0.1", port=port, args=args
        )
        environment = {name: value for name, value in os.environ.items() if KEPT_ENVIRONMENT.fullmatch(name)}
        environment |= {str(pair["name"]): str(pair.get("value", "")) for pair in spec.get("env", ())}
        if token := request.get("modelConfig", {}).get("huggingFaceAccessToken"):
            environment["HF_TOKEN"] = token
        log_file = self.settings.state_dir / "logs" / "engines" / f"{endpoint.name.rsplit('/', 1)[-1]}.log"
        folder_of_work = self.settings.state_dir / "engines"
        folder_of_work.mkdir(parents=True, exist_ok=True)
        operation.report("starting the engine")
        process = await KeptProcess.start(
            argv,
            env=environment | engine.env,
            cwd=folder_of_work,
            log_file=log_file,
            grace_s=self.settings.stop_grace_s,
        )
        endpoint.engine = RunningEngine(process, f"http://127.0.0.1:{port}", model.source)
        timeout_s = float(str(spec.get("deploymentTimeout", "7200s")).rstrip("s"))
        try:
            async with asyncio.timeout(timeout_s):
                await _until_healthy(process, f"{endpoint.engine.address}{engine.health_route}")
        except TimeoutError:
            raise OperationFailed(
                refusals.DEADLINE_EXCEEDED,
                f"Model server was not healthy after {timeout_s:g} s. Its last output:\n{process.last_lines()}",
            ) from None

    def _engine_for(self, spec: dict[str, Any]) -> Engine:
        image = spec.get("imageUri")
        engine = self.settings.engine_for(image)
        if engine is None:
            known = ", ".join(sorted(self.settings.engines)) or "none"
            raise Refusal(
                400,
                f"Failed to pull the container image {image or 'of Model Garden (none was named)'}: no engine of this "
                f"machine stands for it. Known: {known}.",
            )
        return engine

    def _ids(self, request: dict[str, Any]) -> tuple[str, str]:
        taken = len(self.endpoints) + len(self.models) + 1
        made_up = f"mg-{taken}"
        endpoint_id = request.get("endpointConfig", {}).get("endpointUserId") or made_up
        return endpoint_id, request.get("modelConfig", {}).get("modelUserId") or made_up

    def _ordered_refusal(self, name: str) -> None:
        if fault := self.faults.strike("deploy-quota", name):
            raise Refusal(
                429,
                f"The following quotas are exceeded: CustomModelServingH100GPUsPerProjectPerRegion ({fault.message}).",
            )
        if fault := self.faults.strike("deploy-permission", name):
            raise Refusal(403, f"Permission 'aiplatform.endpoints.create' denied on resource ({fault.message}).")
        if fault := self.faults.strike("deploy-eula", name):
            raise Refusal(
                400,
                f"The model requires its End User License Agreement (EULA) to be accepted ({fault.message}).",
                status="FAILED_PRECONDITION",
            )
        if fault := self.faults.strike("deploy-gated-model", name):
            raise Refusal(403, f"Access to the gated Hugging Face model is denied ({fault.message}).")
        if fault := self.faults.strike("deploy-region", name):
            raise Refusal(400, f"Machine type is not supported in this region ({fault.message}).")
        if fault := self.faults.strike("deploy-image", name):
            raise Refusal(400, f"Failed to pull the container image: manifest unknown ({fault.message}).")


async def _until_healthy(process: KeptProcess, url: str) -> None:
    async with httpx.AsyncClient(timeout=5.0, trust_env=False) as client:
        while True:
            if process.exit_status is not None:
                raise OperationFailed(
                    refusals.FAILED_PRECONDITION,
                    f"Model server exited unexpectedly with status {process.exit_status}. "
                    f"Its last output:\n{process.last_lines()}",
                )
            try:
                if (await client.get(url)).status_code == 200:
                    return
            except httpx.TransportError:
                pass
            await asyncio.sleep(0.2)


def _container(request: dict[str, Any]) -> dict[str, Any]:
    spec: dict[str, Any] = request.get("modelConfig", {}).get("containerSpec", {})
    return spec


def _model_id(request: dict[str, Any]) -> str:
    """The model as a config names it: `owner/name@version` or a Hugging Face id."""
    if publisher := request.get("publisherModelName"):
        return str(publisher).removeprefix("publishers/").replace("/models/", "/", 1)
    if hub := request.get("huggingFaceModelId"):
        return str(hub)
    raise Refusal(400, "One of publisher_model_name and hugging_face_model_id is required.")


def _free_port() -> int:
    with closing(socket.socket()) as probe:
        probe.bind(("127.0.0.1", 0))
        port: int = probe.getsockname()[1]
        return port
