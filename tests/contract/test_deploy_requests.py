"""The very requests that deploy and teardown send for examples/llama4-scout.yaml, as Google's client puts them on the wire.

The golden file holds each request's method, address and body. Each body is read by the API's own message type, strictly:
a field that the API doesn't have fails. The settings of Google's notebook are held against it by hand.
"""

from __future__ import annotations

import json
import re
from pathlib import Path
from urllib.parse import parse_qsl, urlsplit

import pytest
import requests
from google.cloud import aiplatform_v1
from google.protobuf import json_format

import golden_file
from eagle_bench import config_file
from eagle_bench.adapters import vertex
from eagle_bench.variants import resolve

ROOT = Path(__file__).parents[2]
GOLDEN = "requests/llama4-scout.json"
RUN = "eagle-benchmark-20260101-120000-c0de"
TOKEN = "hf_planted"
WEIGHTS = "gs://vertex-model-garden-restricted-us/llama4"

MESSAGES = {
    r"POST .*:deploy": aiplatform_v1.DeployRequest,
    r"POST .*:undeployModel": aiplatform_v1.UndeployModelRequest,
    r"POST .*:update": aiplatform_v1.UpdateEndpointLongRunningRequest,
    r"PATCH .*/endpoints/[^/]+": aiplatform_v1.Endpoint,
    r"PATCH .*/models/[^/]+": aiplatform_v1.Model,
}


@pytest.fixture
def sent(monkeypatch):
    """Everything that this process puts on the wire; nothing is changed on the way."""
    seen: list[requests.PreparedRequest] = []
    send = requests.Session.send

    def noting(session, request, **options):
        seen.append(request)
        return send(session, request, **options)

    monkeypatch.setattr(requests.Session, "send", noting)
    return seen


def shown(request):
    """A request as the golden file has it; None for tokens and for the polls of operations, which come in any number."""
    address = urlsplit(request.url)
    if address.path == "/token" or (request.method == "GET" and re.search(r"/operations/\d+$", address.path)):
        return None
    found = {"method": request.method, "path": address.path}
    if query := {key: value for key, value in parse_qsl(address.query) if key != "$alt"}:
        found["query"] = query
    if request.body:
        line = f"{request.method} {address.path}"
        (kind,) = [message for pattern, message in MESSAGES.items() if re.fullmatch(pattern, line)]
        read = json_format.Parse(request.body, kind.pb()(), ignore_unknown_fields=False)
        body = json_format.MessageToDict(read)  # enums by their names
        found["body"] = json.loads(json.dumps(body, sort_keys=True))  # maps have no order
    return found


def story(requests_sent):
    told = [one for request in requests_sent if (one := shown(request))]
    requests_sent.clear()
    return told


@pytest.mark.golden
def test_the_requests_of_the_example(start, settings, sent, tmp_path):
    given = config_file.load(ROOT / "examples" / "llama4-scout.yaml")
    (tmp_path / "token").write_text(TOKEN)
    secrets = {given.hf_token_secret: tmp_path / "token"}
    start(engines={"*sglang-serve*": settings.engines["tiny"]}, secrets=secrets)
    place = vertex.Place(given.project, given.location)
    told = {}
    for spec in resolve(given):
        sent.clear()
        vertex.deploy(place, RUN, spec)
        told[f"deploy {spec.id}"] = story(sent)
        assert vertex.teardown(place, RUN, spec.id).clean
        told[f"teardown {spec.id}"] = story(sent)
    text = json.dumps(told, indent=1) + "\n"
    assert text.count(TOKEN) == len(resolve(given))  # in the request that needs it, and nowhere else
    golden_file.check(GOLDEN, text.replace(TOKEN, "(read from Secret Manager)"))


def body_of(variant):
    told = json.loads((golden_file.GOLDEN / GOLDEN).read_text(encoding="utf-8"))
    (found,) = [one for one in told[f"deploy {variant}"] if one["path"].endswith(":deploy")]
    return found["body"]


SHARED = [
    f"--model={WEIGHTS}/Llama-4-Scout-17B-16E-Instruct",
    "--attention-backend=fa3",
    "--context-length=131072",
    "--tp=8",
    "--enable-multimodal",
    "--tool-call-parser=pythonic",
    "--chat-template=sglang/examples/chat_template/tool_chat_template_llama4_pythonic.jinja",
]
EAGLE = [
    "--speculative-algo=EAGLE3",
    f"--speculative-draft-model-path={WEIGHTS}/Llama-4-Scout-17B-16E-Instruct-EAGLE3-20250829/",
    "--speculative-num-steps=3",
    "--speculative-eagle-topk=4",
    "--speculative-num-draft-tokens=8",
]


@pytest.mark.parametrize(("variant", "args"), [("baseline", SHARED), ("eagle3", SHARED + EAGLE)])
def test_the_settings_are_those_of_the_notebook(variant, args):
    body = body_of(variant)
    container = body["modelConfig"]["containerSpec"]
    assert container.pop("args") == args
    assert container == {
        "imageUri": "us-docker.pkg.dev/deeplearning-platform-release/vertex-model-garden/"
        "sglang-serve.cu124.0-4.ubuntu2204.py310:model-garden.sglang-0-4-release_20250831.00_p0",
        "env": [
            {"name": "MODEL_ID", "value": "meta-llama/Llama-4-Scout-17B-16E-Instruct"},
            {"name": "DEPLOY_SOURCE", "value": "UI_NATIVE_MODEL"},
        ],
        "ports": [{"containerPort": 30000}],
        "predictRoute": "/vertex_generate",
        "healthRoute": "/health",
        "deploymentTimeout": "7200s",
    }
    assert body["publisherModelName"] == "publishers/meta/models/llama4@llama-4-scout-17b-16e-instruct"
    assert body["modelConfig"]["acceptEula"] is True
    assert "dedicatedEndpointDisabled" not in body["endpointConfig"]
    resources = body["deployConfig"]["dedicatedResources"]
    assert (resources["minReplicaCount"], resources["maxReplicaCount"]) == (1, 1)
    assert resources["machineSpec"] == {
        "machineType": "a3-highgpu-8g",
        "acceleratorType": "NVIDIA_H100_80GB",
        "acceleratorCount": 8,
    }


def test_the_variants_differ_in_speculation_and_names_only():
    baseline, eagle = body_of("baseline"), body_of("eagle3")
    for body in (baseline, eagle):
        body["modelConfig"]["containerSpec"].pop("args")
        names = {
            body["modelConfig"].pop("modelUserId"),
            body["modelConfig"].pop("modelDisplayName"),
            body["endpointConfig"].pop("endpointUserId"),
            body["endpointConfig"].pop("endpointDisplayName"),
        }
        assert len(names) == 1
    assert baseline == eagle
