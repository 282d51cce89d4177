"""How requests reach an endpoint: its address, and tokens that are always valid."""

from __future__ import annotations

import threading
from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from typing import Any, Literal

from eagle_bench.adapters.vertex_address import Place, address, credentials
from eagle_bench.adapters.vertex_errors import HINTS, told
from eagle_bench.adapters.vertex_operations import CALL_TIMEOUT_S
from eagle_bench.adapters.vertex_secrets import read_secret
from eagle_bench.errors import ServiceError
from eagle_bench.variants import VariantSpec

RENEW_AHEAD_S = 300.0
SHARING: tuple[Literal["one-at-a-time", "turns"], ...] = ("one-at-a-time", "turns")


def chat_base_url(endpoint: str) -> str:
    """The address of an endpoint, to which `/chat/completions` is added; requests name the model "".

    Raises:
        ServiceError: the endpoint is not there.
    """
    place = Place.of(endpoint)
    there = address(place.location)
    if there.traffic:
        return f"{there.traffic}/v1beta1/{endpoint}"
    host = _endpoint(endpoint).dedicated_endpoint_dns or f"{place.location}-aiplatform.googleapis.com"
    return f"https://{host}/v1beta1/{endpoint}"


def metrics_url(endpoint: str) -> str | None:
    """The address of the engine's `/metrics`, with the endpoint's tokens; None where it can't be reached.

    Only a model that was deployed with an invoke route (`serving.invoke_route`) passes on other paths than the
    one for predictions.

    Raises:
        ServiceError: the endpoint or its model can't be looked up.
    """
    from google.cloud import aiplatform_v1

    there = address(Place.of(endpoint).location)
    deployed = _endpoint(endpoint).deployed_models
    if not deployed:
        return None
    with told(f"look up the model of {endpoint}"):
        models = aiplatform_v1.ModelServiceClient(**there.client_options())
        model = models.get_model(name=deployed[0].model, timeout=CALL_TIMEOUT_S)
    if not model.container_spec.invoke_route_prefix:
        return None
    return f"{chat_base_url(endpoint)}/invoke/metrics"


def machine_sharing(endpoint: str) -> Literal["own", "one-at-a-time", "turns"]:
    """Whether an endpoint has machines of its own, as on Vertex AI, or shares one with the other variants.

    "one-at-a-time": an endpoint is deployed when the one before is gone. "turns": they are there together, and one
    waits while the other is used.

    Raises:
        ServiceError: the endpoint is not there.
    """
    text = str(_endpoint(endpoint).description)
    for sharing in SHARING:
        if text == f"local-vertex machine: {sharing}":
            return sharing
    return "own"


def tokens_for(spec: VariantSpec) -> Callable[[], str] | None:
    """Where a variant's requests get their bearer token: Google's for endpoints, the secret (or none) for URLs."""
    if spec.url is None:
        return TokenSupplier()
    if spec.api_key_secret is None:
        return None
    key = read_secret(spec.api_key_secret)
    return lambda: key


class TokenSupplier:
    """Call it for a bearer token that is valid now. Safe to call from many threads, cheap while the token lasts.

    A token is renewed ahead of its end: by one caller, while the others still use the old one.
    """

    def __init__(self, source: Any = None, *, clock: Callable[[], datetime] = lambda: datetime.now(UTC)) -> None:
        self._credentials = source if source is not None else credentials()
        self._clock = clock
        self._lock = threading.Lock()
        self._token: str | None = None
        self._renew_at = self._end = datetime.min.replace(tzinfo=UTC)

    def __call__(self) -> str:
        """A valid token.

        Raises:
            ServiceError: none can be had ("authentication").
        """
        now = self._clock()
        token = self._token
        if token is not None and now < self._renew_at:
            return token
        usable = token is not None and now < self._end
        if not self._lock.acquire(blocking=not usable):
            return token or ""  # somebody renews it; the old one is good until then
        try:
            if self._token is not None and self._clock() < self._renew_at:
                return self._token
            return self._renew()
        except ServiceError:
            if usable and token is not None:
                self._renew_at = min(self._end, self._clock() + timedelta(seconds=10))
                return token
            raise
        finally:
            self._lock.release()

    def refused(self, token: str) -> None:
        """Tell that a server refused this token: the next call gets a new one."""
        with self._lock:
            if token == self._token:
                self._token = None

    def _renew(self) -> str:
        import google.auth.transport.requests

        began = self._clock()
        with told("give out an access token"):
            self._credentials.refresh(google.auth.transport.requests.Request())
        token = self._credentials.token
        if not token:
            raise ServiceError(
                "Google's credentials gave no access token.", kind="authentication", hint=HINTS["authentication"]
            )
        expiry = self._credentials.expiry
        self._end = expiry.replace(tzinfo=UTC) if expiry else began + timedelta(hours=1)
        lifetime_s = max(0.0, (self._end - began).total_seconds())
        self._renew_at = self._end - timedelta(seconds=min(RENEW_AHEAD_S, lifetime_s / 4))
        self._token = str(token)
        return self._token


def _endpoint(endpoint: str) -> Any:
    from google.cloud import aiplatform_v1

    there = address(Place.of(endpoint).location)
    with told(f"find the endpoint {endpoint}"):
        client = aiplatform_v1.EndpointServiceClient(**there.client_options())
        return client.get_endpoint(name=endpoint, timeout=CALL_TIMEOUT_S)
