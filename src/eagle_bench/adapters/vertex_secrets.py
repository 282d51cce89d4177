"""Secrets by resource name: read when needed, kept in memory, never shown."""

from __future__ import annotations

from eagle_bench.adapters.vertex_address import secrets_options
from eagle_bench.adapters.vertex_errors import told


def read_secret(resource: str) -> str:
    """The value of `projects/…/secrets/…/versions/…`.

    Raises:
        ServiceError: it is not there, or may not be read.
    """
    from google.cloud import secretmanager

    with told(f"read the secret {resource}"):
        client = secretmanager.SecretManagerServiceClient(**secrets_options())
        answer = client.access_secret_version(name=resource, timeout=60.0)
    return str(answer.payload.data.decode()).strip()
