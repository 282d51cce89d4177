"""Who has the machine that a deploy waits for, where variants share one: with Local Vertex."""

from __future__ import annotations

from typing import Any

from eagle_bench.adapters.vertex_address import Place, address, on_this_machine
from eagle_bench.adapters.vertex_errors import told
from eagle_bench.adapters.vertex_names import PREFIX, RUN_LABEL, VARIANT_LABEL, endpoint_id, label_value
from eagle_bench.adapters.vertex_operations import CALL_TIMEOUT_S, deploys_under_way
from eagle_bench.errors import ServiceError

IN_USE = "local-vertex machine: in use by "
UNKNOWN = "another endpoint"


class Ahead:
    """Names those whose machine a deploy of one run waits for: its operation says it, as a partial failure."""

    def __init__(self, run_id: str) -> None:
        self._run_id = run_id
        self._known: dict[str, str] = {}

    def of(self, operation: Any) -> tuple[str, ...]:
        """Variants, of other runs with their run; empty where it waits for nobody.

        Args:
            operation: `google.longrunning.Operation` of a deploy; None where it could not be asked about.
        """
        from google.cloud import aiplatform_v1

        metadata = aiplatform_v1.DeployOperationMetadata()  # its type must be known before it is unpacked
        if operation is None or not operation.metadata.Unpack(metadata._pb):
            return ()
        said = (str(failure.message) for failure in metadata.generic_metadata.partial_failures)
        endpoints = (name for text in said if text.startswith(IN_USE) for name in text.removeprefix(IN_USE).split(", "))
        return tuple(dict.fromkeys(map(self._name, endpoints)))

    def _name(self, endpoint: str) -> str:
        if endpoint not in self._known:
            name = _by_id(self._run_id, endpoint.rsplit("/", 1)[-1]) or _by_labels(self._run_id, endpoint)
            if name is None:  # it may be labelled later
                return UNKNOWN
            self._known[endpoint] = name
        return self._known[endpoint]


def machine_awaited(job_name: str, variant: str) -> tuple[str, ...]:
    """Whose machine a variant of a job waits for; empty where it waits for none, or that can't be told."""
    from google.cloud import aiplatform_v1

    if not on_this_machine():
        return ()
    place, run_id = Place.of(job_name), job_name.rsplit("/", 1)[-1]
    try:
        client = aiplatform_v1.ModelGardenServiceClient(**address(place.location).client_options())
        for name in deploys_under_way(client, place, endpoint_id(run_id, variant)):
            with told(f"look up {name}"):
                return Ahead(run_id).of(client.get_operation({"name": name}, timeout=CALL_TIMEOUT_S))
    except ServiceError:  # who waits for the job hears of a lost connection elsewhere
        pass
    return ()


def _by_id(run_id: str, name: str) -> str | None:
    """The variant of this run that an endpoint's id is derived from, where it can be read out of it."""
    variant = name.removeprefix(f"{PREFIX}{run_id}-").rpartition("-")[0]
    return variant if endpoint_id(run_id, variant) == name else None


def _by_labels(run_id: str, endpoint: str) -> str | None:
    from google.cloud import aiplatform_v1

    try:
        with told(f"look up {endpoint}"):
            client = aiplatform_v1.EndpointServiceClient(**address(Place.of(endpoint).location).client_options())
            labels = client.get_endpoint(name=endpoint, timeout=CALL_TIMEOUT_S).labels
    except ServiceError:  # a name is never worth a failed deploy
        return None
    variant, run = labels.get(VARIANT_LABEL), labels.get(RUN_LABEL)
    if not variant or not run:
        return None
    return str(variant) if run == label_value(run_id) else f"{variant} of {run}"
