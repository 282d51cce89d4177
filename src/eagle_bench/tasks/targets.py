"""Where a variant's requests go, and with which token."""

from __future__ import annotations

from typing import Any

from eagle_bench.adapters.vertex import chat_base_url, metrics_url, tokens_for
from eagle_bench.adapters.vllm_client.target import Target, metrics_beside
from eagle_bench.variants import VariantSpec


def target_of(spec: VariantSpec, endpoint: Any) -> Target:
    """The target of a variant's requests.

    Args:
        endpoint: the artifact of `deploy`; its `resourceName` names a Vertex AI endpoint.

    Raises:
        ServiceError: the endpoint can't be found, or no token can be had.
    """
    model = spec.served_model or ""
    if spec.url:
        return Target(base_url=spec.url, model=model, token=tokens_for(spec), metrics_url=metrics_beside(spec.url))
    name = endpoint.metadata["resourceName"]
    return Target(base_url=chat_base_url(name), model=model, token=tokens_for(spec), metrics_url=metrics_url(name))
