"""Where Vertex AI is: the real one, or Local Vertex where EAGLE_BENCH_VERTEX_API names it. The only reader of that."""

from __future__ import annotations

import os
import re
from dataclasses import dataclass
from typing import Any

from eagle_bench.adapters import lean_google
from eagle_bench.config import Config
from eagle_bench.config_problems import lacking
from eagle_bench.errors import InputError

lean_google.install()  # before anybody imports Google's client, and without importing it

VARIABLE = "EAGLE_BENCH_VERTEX_API"
SCOPES = ("https://www.googleapis.com/auth/cloud-platform",)


@dataclass(frozen=True)
class Place:
    """A project and a region."""

    project: str
    location: str

    def __str__(self) -> str:
        return f"projects/{self.project}/locations/{self.location}"

    @classmethod
    def of(cls, resource: str) -> Place:
        """The place of a resource name, `projects/P/locations/L/…`."""
        found = re.match(r"projects/([^/]+)/locations/([^/]+)(/|$)", resource)
        if not found:
            raise ValueError(f"{resource!r} is not a resource name: it must begin with projects/…/locations/…")
        return cls(found[1], found[2])


def place_of(config: Config) -> Place:
    """Where the job of a config runs.

    Raises:
        InputError: the config does not say it.
    """
    if config.project is None or config.location is None:
        raise InputError(
            "\n".join(lacking(config.model_dump(include={"project", "location"}), ("project", "location")))
        )
    return Place(config.project, config.location)


@dataclass(frozen=True)
class Address:
    """How Vertex AI is reached in one region.

    `api` is what `aiplatform.init(api_endpoint=…)` takes, `transport` its `api_transport`. Waits are in seconds:
    between looks at an operation, and between attempts at what is refused for now.
    """

    api: str
    transport: str
    traffic: str | None
    poll_s: float
    retry_delays_s: tuple[float, ...]

    def client_options(self) -> dict[str, Any]:
        """Keyword arguments for a generated client; credentials are google.auth's defaults."""
        return {"client_options": {"api_endpoint": self.api}, "transport": self.transport, "credentials": credentials()}

    def resource_url(self, resource: str) -> str:
        """The address of a resource in the API, as the console links it."""
        base = self.api if "://" in self.api else f"https://{self.api}"
        return f"{base}/v1/{resource}"


def address(location: str) -> Address:
    """Vertex AI's address in a region, or Local Vertex's."""
    if local := _local():
        return Address(api=local, transport="rest", traffic=local, poll_s=0.5, retry_delays_s=(0.2, 0.5, 1.0))
    return Address(
        api=f"{location}-aiplatform.googleapis.com",
        transport="grpc",
        traffic=None,
        poll_s=15.0,
        retry_delays_s=(2.0, 5.0, 15.0, 30.0),
    )


def secrets_options() -> dict[str, Any]:
    """Keyword arguments for a client of Secret Manager, which Local Vertex stands for too."""
    options: dict[str, Any] = {"transport": "rest", "credentials": credentials()}
    if local := _local():
        options["client_options"] = {"api_endpoint": local}
    return options


def google_api(service: str) -> str:
    """The address of another of Google's REST APIs ("cloudquotas"), which Local Vertex stands for too."""
    return _local() or f"https://{service}.googleapis.com"


def sdk_options(place: Place) -> dict[str, Any]:
    """Keyword arguments for `aiplatform.init`, for `PipelineJob` and what else the SDK has.

    Local Vertex runs jobs as the account of its key; on Vertex AI the account is the config's to choose.
    """
    there = address(place.location)
    options: dict[str, Any] = {
        "project": place.project,
        "location": place.location,
        "api_endpoint": there.api,
        "api_transport": there.transport,
        "credentials": credentials(),
    }
    if _local():
        options["service_account"] = options["credentials"].service_account_email
    return options


def on_this_machine() -> bool:
    """Whether jobs run on this machine, and can read its paths."""
    return bool(_local())


def _local() -> str:
    return os.environ.get(VARIABLE, "").rstrip("/")


def credentials() -> Any:
    """Google's default credentials.

    Raises:
        ServiceError: there are none.
    """
    import google.auth

    from eagle_bench.adapters.vertex_errors import told

    with told("find Google credentials"):
        found, _ = google.auth.default(scopes=list(SCOPES))
    return found


def impersonated(account: str) -> Any:
    """Credentials of a service account that the default ones may act as; they are asked for when first used."""
    from google.auth import impersonated_credentials

    local = _local()
    name = f"projects/-/serviceAccounts/{account}:generateAccessToken"
    return impersonated_credentials.Credentials(
        source_credentials=credentials(),
        target_principal=account,
        target_scopes=list(SCOPES),
        lifetime=300,
        iam_endpoint_override=f"{local}/v1/{name}" if local else None,
    )
