"""Calls of Google's REST APIs that no client of ours covers: what an account may do, quotas, usage."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from eagle_bench.adapters.vertex_address import credentials, google_api
from eagle_bench.adapters.vertex_errors import kind_of, told
from eagle_bench.errors import ServiceError, because

TIMEOUT_S = 30.0


def call(
    service: str,
    method: str,
    path: str,
    *,
    doing: str,
    query: Mapping[str, Any] | None = None,
    body: Mapping[str, Any] | None = None,
    account: Any = None,
) -> dict[str, Any]:
    """The JSON of an answer.

    Args:
        service: as in SERVICE.googleapis.com.
        path: from the version on: "v1/projects/p:testIamPermissions".
        doing: what is asked, for messages: "read the quota of x".
        account: credentials, in place of the default ones.

    Raises:
        ServiceError: refused or out of reach; the message holds the service's words.
    """
    from google.auth.transport.requests import AuthorizedSession

    with told(doing), AuthorizedSession(account or credentials()) as session:
        answer = session.request(method, f"{google_api(service)}/{path}", params=query, json=body, timeout=TIMEOUT_S)
    try:
        found = answer.json()
    except ValueError:
        found = {}
    if answer.ok and isinstance(found, dict):
        return found
    error = found.get("error", {}) if isinstance(found, dict) else {}
    words = (
        str(error.get("message") or answer.reason or "no reason was given") if isinstance(error, dict) else str(error)
    )
    raise ServiceError(
        because(f"{service}.googleapis.com refused to {doing} ({answer.status_code})", words),
        kind=kind_of(answer.status_code, words),
    )
