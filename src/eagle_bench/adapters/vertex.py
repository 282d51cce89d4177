"""Vertex AI, as the rest of the package uses it. `vertex_address` alone knows whether it is the real one.

Place, address          where it is: client options, the host of traffic
    sdk_options             the same for aiplatform.init and PipelineJob
deploy, Deployed        an endpoint and a model for a variant
teardown, teardown_id   take them away; TeardownReport says what is left, not_deleted is the error for it
leftovers, Made         what runs left behind
chat_base_url, metrics_url, tokens_for, TokenSupplier      traffic
    machine_sharing         whether variants share one machine, and how
"""

from eagle_bench.adapters.vertex_address import Address, Place, address, credentials, sdk_options
from eagle_bench.adapters.vertex_deploy import Deployed, deploy
from eagle_bench.adapters.vertex_names import endpoint_id, labels
from eagle_bench.adapters.vertex_request import deploy_request
from eagle_bench.adapters.vertex_teardown import (
    Left,
    Made,
    TeardownReport,
    leftovers,
    not_deleted,
    teardown,
    teardown_id,
)
from eagle_bench.adapters.vertex_traffic import TokenSupplier, chat_base_url, machine_sharing, metrics_url, tokens_for

__all__ = [
    "Address",
    "Deployed",
    "Left",
    "Made",
    "Place",
    "TeardownReport",
    "TokenSupplier",
    "address",
    "chat_base_url",
    "credentials",
    "deploy",
    "deploy_request",
    "endpoint_id",
    "labels",
    "leftovers",
    "machine_sharing",
    "metrics_url",
    "not_deleted",
    "sdk_options",
    "teardown",
    "teardown_id",
    "tokens_for",
]
