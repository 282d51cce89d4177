"""Who may do what: `testIamPermissions`, acting as another account, quotas. Everything is allowed but what is denied."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable
from datetime import UTC, datetime, timedelta
from fnmatch import fnmatchcase
from typing import Any

from starlette.requests import Request
from starlette.routing import Route

from eagle_bench.local_vertex.buckets import Handler
from eagle_bench.local_vertex.refusals import Refusal, not_found
from eagle_bench.local_vertex.settings import Quota, Settings
from eagle_bench.local_vertex.tokens import Tokens

ACT_AS = "iam.serviceAccounts.getAccessToken"
UNLIMITED = Quota(limit=-1)


class Accounts:
    """Answers for the IAM, Cloud Quotas and Cloud Monitoring APIs."""

    def __init__(self, settings: Settings, tokens: Tokens) -> None:
        self._settings, self._tokens = settings, tokens

    def routes(self, api: Callable[[str, str, Handler], Route]) -> list[Route]:
        account, quotas = "/v1/projects/{project}/serviceAccounts/{account}", "/locations/global/services/{service}"
        return [
            api("POST", f"{account}:generateAccessToken", self._token),
            api("POST", f"{account}:testIamPermissions", self._held),
            api("POST", "/v1/projects/{project}/secrets/{secret}:testIamPermissions", self._held),
            api("POST", "/v1/projects/{project}:testIamPermissions", self._held),
            api("GET", "/storage/v1/b/{bucket}/iam/testPermissions", self._held_on_bucket),
            api("GET", f"/v1/projects/{{project}}{quotas}/quotaInfos/{{quota}}", self._quota),
            api("GET", "/v3/projects/{project}/timeSeries", self._usage),
        ]

    async def _held(self, request: Request) -> dict[str, Any]:
        name = request.url.path.removeprefix("/v1/").removesuffix(":testIamPermissions")
        try:
            wanted = json.loads(await request.body())["permissions"]
        except (ValueError, KeyError, TypeError):
            raise Refusal(400, "Invalid JSON payload received.") from None
        return self._answer(request, name, wanted)

    async def _held_on_bucket(self, request: Request) -> dict[str, Any]:
        name = f"buckets/{request.path_params['bucket']}"
        return self._answer(request, name, request.query_params.getlist("permissions"))

    def _answer(self, request: Request, name: str, wanted: Iterable[str]) -> dict[str, Any]:
        if "/secrets/" in name and self._absent(name):
            return {}  # Secret Manager gives away nothing of what is not there
        self._require_there(name)
        account = self._caller(request)
        kept = [permission for permission in wanted if not self._denied(account, name, permission)]
        return {"permissions": kept} if kept else {}

    async def _token(self, request: Request) -> dict[str, Any]:
        account = request.path_params["account"]
        name = f"projects/{request.path_params['project']}/serviceAccounts/{account}"
        self._require_there(name)
        if self._denied(self._caller(request), name, ACT_AS):
            raise Refusal(403, f"Permission '{ACT_AS}' denied on resource (or it may not exist).")
        try:
            body = json.loads(await request.body())
            lifetime_s = float(str(body.get("lifetime") or "3600s").rstrip("s"))
        except (ValueError, AttributeError):
            raise Refusal(400, "Invalid JSON payload received.") from None
        end = datetime.now(UTC) + timedelta(seconds=lifetime_s)
        return {"accessToken": self._tokens.issue(account, lifetime_s), "expireTime": f"{end:%Y-%m-%dT%H:%M:%SZ}"}

    async def _quota(self, request: Request) -> dict[str, Any]:
        name = request.path_params["quota"]
        found = self._settings.quotas.get(name, UNLIMITED)
        region = {
            "dimensions": {"region": found.region},
            "details": {"value": str(found.limit)} if found.limit else {},
            "applicableLocations": [found.region],
        }
        everywhere = {**region, "dimensions": {}, "applicableLocations": ["us-central1", "us-east4", "europe-west4"]}
        return {
            "name": request.url.path.removeprefix("/v1/"),
            "quotaId": name,
            "metric": _metric(name),
            "dimensionsInfos": [region if found.region else everywhere],
        }

    async def _usage(self, request: Request) -> dict[str, Any]:
        wanted = request.query_params.get("filter", "")
        for name, found in self._settings.quotas.items():
            if f'"{_metric(name)}"' in wanted and found.used:
                return {"timeSeries": [{"points": [{"value": {"int64Value": str(found.used)}}]}]}
        return {}

    def _caller(self, request: Request) -> str:
        return self._tokens.account_of(request.headers.get("authorization"))

    def _require_there(self, name: str) -> None:
        if self._absent(name):
            raise not_found(name)

    def _absent(self, name: str) -> bool:
        return any(fnmatchcase(name, absent) for absent in self._settings.absent)

    def _denied(self, account: str, name: str, permission: str) -> bool:
        return any(
            one.permission == permission
            and fnmatchcase(name, one.resource)
            and (one.account is None or one.account == account)
            for one in self._settings.denied
        )


def _metric(quota: str) -> str:
    """A name of its own for each quota; Vertex AI's real ones are not derived from the ids."""
    return f"aiplatform.googleapis.com/{quota.lower()}"
