"""Vertex AI's generated client without its import of everything: a second of CPU, which each task of a run would pay.

`google.cloud.aiplatform_v1` imports 40 services and 100 files of types; a task uses two or three. So until somebody asks
for something else, the package is one that looks up the names below where they are defined. What it doesn't know, as
Google's own SDK needs it, makes it import the rest: nobody can tell it from the real one by using it.
"""

from __future__ import annotations

import importlib
import importlib.util
import sys
import threading
from types import ModuleType
from typing import Any

PACKAGE = "google.cloud.aiplatform_v1"
DEFINED_IN = {
    "EndpointServiceClient": "services.endpoint_service",
    "MetadataServiceClient": "services.metadata_service",
    "ModelGardenServiceClient": "services.model_garden_service",
    "ModelServiceClient": "services.model_service",
    "PipelineServiceClient": "services.pipeline_service",
    "AcceleratorType": "types.accelerator_type",
    "ClientConnectionConfig": "types.endpoint",
    "DedicatedResources": "types.machine_resources",
    "DeployOperationMetadata": "types.model_garden_service",
    "DeployRequest": "types.model_garden_service",
    "DeployResponse": "types.model_garden_service",
    "Endpoint": "types.endpoint",
    "EnvVar": "types.env_var",
    "MachineSpec": "types.machine_resources",
    "Model": "types.model",
    "ModelContainerSpec": "types.model",
    "Port": "types.model",
    "Probe": "types.model",
    "ReservationAffinity": "types.reservation_affinity",
}


def install() -> None:
    """Put the lean package where the real one would be, unless that is there already."""
    if PACKAGE in sys.modules:
        return
    root = _Lean(PACKAGE, DEFINED_IN)
    root.types = _Lean(f"{PACKAGE}.types", {})


def is_whole() -> bool:
    """Whether everything was imported after all."""
    found = sys.modules.get(PACKAGE)
    return not isinstance(found, _Lean) or bool(found.__dict__["_whole"])


class _Lean(ModuleType):
    """A package whose own code has not run yet."""

    types: ModuleType

    def __init__(self, name: str, defined_in: dict[str, str]) -> None:
        super().__init__(name)
        spec = importlib.util.find_spec(name)
        if spec is None or spec.submodule_search_locations is None:
            raise ModuleNotFoundError(f"No module named {name!r}", name=name)
        self.__spec__, self.__loader__, self.__file__ = spec, spec.loader, spec.origin
        self.__path__, self.__package__ = list(spec.submodule_search_locations), name
        self.__dict__["_defined_in"] = defined_in
        self.__dict__["_lock"] = threading.RLock()
        self.__dict__["_whole"] = False
        sys.modules[name] = self
        parent, _, child = name.rpartition(".")
        setattr(importlib.import_module(parent), child, self)

    def __getattr__(self, name: str) -> Any:
        """What is not there yet: a known name, a module of the package, or anything of the whole."""
        if name.startswith("__") and name != "__all__":
            raise AttributeError(name)
        if where := self.__dict__["_defined_in"].get(name):
            found = getattr(importlib.import_module(f"{self.__name__}.{where}"), name)
        elif importlib.util.find_spec(f"{self.__name__}.{name}"):
            found = importlib.import_module(f"{self.__name__}.{name}")
        else:
            self._complete()
            found = self.__dict__[name] if name in self.__dict__ else _missing(self, name)
        self.__dict__[name] = found
        return found

    def _complete(self) -> None:
        """Run the package's own code, as an import of it would have done."""
        with self.__dict__[
            "_lock"
        ]:  # other threads wait for all of it; the code itself may ask for what it has not yet
            if not self.__dict__["_whole"]:
                self.__dict__["_whole"] = True
                spec = self.__spec__
                assert spec and spec.loader
                spec.loader.exec_module(self)


def _missing(module: ModuleType, name: str) -> Any:
    raise AttributeError(f"module {module.__name__!r} has no attribute {name!r}")
