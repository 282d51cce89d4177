"""Who gets in: tokens as `google.auth.default()` gets them, and nobody without."""

from __future__ import annotations

import json
import time

import httpx
import jwt
import pytest
from cryptography.hazmat.primitives.asymmetric import rsa
from google.api_core import exceptions
from google.cloud import aiplatform_v1

PLACE = "projects/p/locations/us-central1"
GRANT = "urn:ietf:params:oauth:grant-type:jwt-bearer"


def test_calls_without_a_valid_token_are_refused(server):
    paths = (f"/v1/{PLACE}/endpoints", f"/v1/{PLACE}/models", f"/v1/{PLACE}/pipelineJobs", "/local/state")
    for path in paths:
        for header in (None, "Bearer None", "Bearer", "Bearer a.b.c", "Basic eDp5"):
            answer = httpx.get(server.url + path, headers={"Authorization": header} if header else {})
            assert (path, header, answer.status_code) == (path, header, 401)
            assert answer.json()["error"]["status"] == "UNAUTHENTICATED"


def test_traffic_without_a_valid_token_is_refused(server):
    address = f"{server.url}/v1beta1/{PLACE}/endpoints/any/chat/completions"
    answer = httpx.post(address, json={}, headers={"Authorization": "Bearer None"})
    assert (answer.status_code, answer.json()["error"]["code"]) == (401, 401)


def test_a_token_works_until_its_end(start, bearer, until):
    server = start(token_lifetime_s=2)
    header = bearer()
    assert httpx.get(f"{server.url}/v1/{PLACE}/endpoints", headers=header).status_code == 200
    until(lambda: httpx.get(f"{server.url}/v1/{PLACE}/endpoints", headers=header).status_code == 401)
    assert httpx.get(f"{server.url}/v1/{PLACE}/endpoints", headers=bearer()).status_code == 200


def test_a_revoked_token_works_no_longer(server, bearer):
    header = bearer()
    httpx.post(f"{server.url}/local/tokens:revoke", headers=header).raise_for_status()
    assert httpx.get(f"{server.url}/v1/{PLACE}/endpoints", headers=header).status_code == 401


def assertion(server, key=None, **claims):
    account = json.loads(server.key_file.read_text())
    now = int(time.time())
    payload = {"iss": account["client_email"], "aud": account["token_uri"], "iat": now, "exp": now + 60, **claims}
    return jwt.encode(payload, key or account["private_key"], algorithm="RS256")


def grant(server, signed):
    return httpx.post(f"{server.url}/token", data={"grant_type": GRANT, "assertion": signed}).status_code


def test_only_what_the_key_signed_is_taken(server):
    assert grant(server, assertion(server)) == 200
    stranger = rsa.generate_private_key(public_exponent=65537, key_size=2048)
    now = int(time.time())
    assert grant(server, assertion(server, key=stranger)) == 400
    assert grant(server, assertion(server, iat=now - 7200, exp=now - 3600)) == 400
    assert grant(server, assertion(server, iss="other@example.com")) == 400
    assert grant(server, assertion(server, aud="https://example.com/token")) == 400
    assert grant(server, "nonsense") == 400
    assert httpx.post(f"{server.url}/token", data={"grant_type": "password"}).status_code == 400


def test_a_self_signed_assertion_opens_the_api_and_no_endpoint(server):
    header = {"Authorization": f"Bearer {assertion(server)}"}
    assert httpx.get(f"{server.url}/v1/{PLACE}/endpoints", headers=header).status_code == 200
    traffic = f"{server.url}/v1beta1/{PLACE}/endpoints/any/chat/completions"
    assert httpx.post(traffic, json={}, headers=header).status_code == 401


def test_the_key_is_for_its_owner_only(server):
    assert server.key_file.stat().st_mode & 0o077 == 0


def test_it_listens_on_loopback_only(server):
    assert server.url.startswith("http://127.0.0.1:")


def test_unknown_calls_are_refused_as_google_does(server, bearer):
    answer = httpx.get(f"{server.url}/v1/{PLACE}/nothing", headers=bearer())
    assert (answer.status_code, answer.json()["error"]["status"]) == (404, "NOT_FOUND")
    client = aiplatform_v1.EndpointServiceClient(client_options={"api_endpoint": server.url}, transport="rest")
    with pytest.raises(exceptions.NotFound, match="endpoints/none is not found"):
        client.get_endpoint(name=f"{PLACE}/endpoints/none")


def test_what_an_engine_gets_in_its_environment_stays_on_no_disk(start, settings):
    secret = "hf_planted_in_an_engine"
    tiny = settings.engines["tiny"].model_copy(update={"env": {"HF_TOKEN": secret}})
    server = start(engines={"tiny": tiny})
    files = [path for path in server.settings.state_dir.rglob("*") if path.is_file()]
    assert server.log_file in files
    assert [path for path in files if secret.encode() in path.read_bytes()] == []
