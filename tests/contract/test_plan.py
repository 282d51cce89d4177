"""`eagle-bench plan`: each check says ok, refused or not checked, for its cause; nothing is made."""

from __future__ import annotations

import json

import pytest
import yaml

from eagle_bench import cli, config_file, planning
from eagle_bench.adapters import iam, vertex
from eagle_bench.adapters.vertex_address import Place
from eagle_bench.adapters.vertex_quota import quota, quota_id
from eagle_bench.config import Config
from eagle_bench.local_vertex.settings import Denied, Engine, Quota
from eagle_bench.run_plan import Check
from eagle_bench.serving import Serving
from eagle_bench.variants import VariantSpec
from servers.hub import Repo

JOB = "bench@local-project.iam.gserviceaccount.com"
CALLER = "eagle-bench@local-project.iam.gserviceaccount.com"
SECRET = "projects/local-project/secrets/hub"
H100S = quota_id("NVIDIA_H100_80GB", spot=False)
TOKENIZER = {"tokenizer.json": b"{}", "config.json": b"{}"}


@pytest.fixture
def hub(hub):
    hub.repos["models/meta/gated"] = Repo(TOKENIZER, gated=True)
    hub.known_tokens |= {"hf_let_in", "hf_stranger"}
    hub.admitted_tokens |= {"hf_let_in"}
    return hub


@pytest.fixture
def secret(tmp_path):
    file = tmp_path / "token"
    file.write_text("hf_let_in")
    return {f"{SECRET}/versions/latest": file}


def config(**fields) -> Config:
    given = {
        "project": "local-project",
        "location": "us-central1",
        "pipeline_root": "gs://local-bucket/eagle-bench",
        "service_account": JOB,
        "model": "meta/gated",
        "tokenizer": "meta/gated",
        "hf_token_secret": f"{SECRET}/versions/latest",
        "serving": {
            "image": "tiny",
            "machine_type": "a3-highgpu-8g",
            "accelerator": {"type": "NVIDIA_H100_80GB", "count": 8},
        },
        "variants": [{"id": "baseline"}, {"id": "eagle3", "args": ["--speculative-algo=EAGLE3"]}],
        "workload": {"dataset": "builtin", "prompts_per_level": 50},
        "concurrency": [1, 2],
        "price_per_hour": 88.0,
        **fields,
    }
    return config_file.validate({key: value for key, value in given.items() if value is not None})


def checked(given: Config) -> dict[str, Check]:
    found = list(planning.checks(given))
    assert len({check.name for check in found}) == len(found)
    return {check.name: check for check in found}


def of_status(found: dict[str, Check], status: str) -> set[str]:
    return {name for name, check in found.items() if check.status == status}


def test_prompts_that_a_job_would_look_for_in_another_folder_are_refused(start, secret, hub, tmp_path, monkeypatch):
    (tmp_path / "mine.jsonl").write_text("".join(f'{{"prompt": "{n}?"}}\n' for n in range(200)))
    monkeypatch.chdir(tmp_path)
    start(secrets=secret)
    load = {"prompts_per_level": 50}
    found = checked(config(workload={**load, "dataset": "mine.jsonl"}))["data"]
    assert (found.status, found.hint) == ("refused", f"Give the whole path, '{tmp_path / 'mine.jsonl'}'.")
    assert checked(config(workload={**load, "dataset": str(tmp_path / "mine.jsonl")}))["data"].status == "ok"


def test_speculation_that_all_share_is_no_difference(start, secret, hub):
    start(secrets=secret)
    shared = ["--speculative-draft-model-path=a/b", "--speculative-num-steps=3"]
    variants = [{"id": "baseline"}, {"id": "eagle3", "args": ["--speculative-eagle-topk=1"]}]
    serving = {"image": "tiny", "machine_type": "a3-highgpu-8g", "args": shared}
    found = checked(config(serving=serving, variants=variants))
    assert found["variants"].text == "eagle3 differs in speculation (speculative-eagle-topk)."


def test_all_is_well(start, secret, hub, tmp_path, capsys):
    start(secrets=secret, quotas={H100S: Quota(limit=24, used=8)})
    found = checked(config())
    assert of_status(found, "ok") == set(found) - {"machine", "serving-image", "component-images"}, found
    assert of_status(found, "refused") == set()
    assert "speculation (speculative-algo)" in found["variants"].text

    assert "700 prompts can be used before the length limits, 106 are needed" in found["data"].text
    assert f"signed in as {CALLER}" in found["credentials"].text
    assert (
        "16 NVIDIA_H100_80GB are needed for 2 endpoints; us-central1 has a limit of 24, 8 in use" in found["quota"].text
    )
    assert SECRET in found["secrets"].text
    assert vertex.leftovers(Place("local-project", "us-central1")) == ()

    path = tmp_path / "bench.yaml"
    path.write_text(yaml.safe_dump(config().model_dump(mode="json", exclude_none=True, exclude_unset=True)))
    with pytest.raises(SystemExit) as caught:
        cli.main(["plan", str(path), "--json", "--ms-per-token", "8-12", "--answer-tokens=100"])
    assert caught.value.code == 0
    plan = json.loads(capsys.readouterr().out)
    assert plan["may_run"] and len(plan["checks"]) == len(found)
    assert plan["assumptions"]["ms_per_token"] == {"low": 8, "high": 12}
    assert plan["prompts_needed"] == 106
    # Local Vertex has no other machine than this one, whatever the config names.
    assert [(one["machine"], one["accelerators"]) for one in plan["endpoints"]] == [("this-machine", None)] * 2
    assert plan["estimate"]["run_cost"]["low"] == pytest.approx(2 * plan["endpoints"][0]["cost"]["low"])


def test_each_refusal_names_what_is_missing_and_what_to_do(start, secret, hub, tmp_path, capsys):
    start(
        secrets=secret,
        quotas={H100S: Quota(limit=8)},
        denied=(
            Denied(permission="aiplatform.pipelineJobs.create", account=CALLER),
            Denied(permission="iam.serviceAccounts.actAs"),
            Denied(permission="storage.buckets.get"),
            Denied(permission="aiplatform.endpoints.deploy", account=JOB),
            Denied(permission="storage.objects.create", resource="buckets/local-bucket", account=JOB),
            Denied(permission="secretmanager.versions.access", account=JOB),
        ),
    )
    given = config(
        tokenizer="meta/none",
        model="owner/name",
        variants=[{"id": "baseline"}, {"id": "eagle3", "args": ["--speculative-algo=EAGLE3", "--dtype=half"]}],
        workload={"dataset": "builtin", "prompts_per_level": 5000},
    )
    found = checked(given)
    assert of_status(found, "ok") == {"credentials", "secrets", "template"}
    open_here = {"machine", "serving-image", "component-images"}
    assert of_status(found, "refused") == set(found) - {"credentials", "secrets", "template"} - open_here, found
    expected = {
        "variants": ("dtype (not set and half)", "allow_difference: [dtype]"),
        "data": ("10\u202f006 are needed", "prompts_per_level"),
        "tokenizer": ("no model meta/none", "spelling"),
        "model": ("no model owner/name", "spelling"),
        "bucket": ("you lack storage.buckets.get on gs://local-bucket", "roles/storage.legacyBucketReader"),
        "caller": ("aiplatform.pipelineJobs.create on projects/local-project", "roles/aiplatform.user"),
        "service-account": (f"run as {JOB}", "roles/iam.serviceAccountUser"),
        "job": ("aiplatform.endpoints.deploy on projects/local-project", "roles/storage.objectUser"),
        "quota": ("16 NVIDIA_H100_80GB are needed for 2 endpoints; us-central1 has a limit of 8, 0 in use", H100S),
    }
    for name, (text, hint) in expected.items():
        assert text in found[name].text, found[name]
        assert hint in (found[name].hint or ""), found[name]
    assert f"secretmanager.versions.access on {SECRET}" in found["job"].text

    path = tmp_path / "bench.yaml"
    path.write_text(yaml.safe_dump(given.model_dump(mode="json", exclude_none=True, exclude_unset=True)))
    with pytest.raises(SystemExit) as caught:
        cli.main(["plan", str(path)])
    assert caught.value.code == 2
    shown = " ".join(capsys.readouterr().out.split())
    assert "It may not run: variants, data, tokenizer, model, bucket, caller" in shown
    assert "$88.00/h" in shown and "Assumed, not measured" in shown
    with pytest.raises(SystemExit):
        cli.main(["plan", str(path), "--allow-difference", "dtype"])
    assert "as allowed in dtype (not set and half)" in " ".join(capsys.readouterr().out.split())


def test_what_is_not_there_and_what_can_not_be_asked(start, hub):
    start(
        absent=("buckets/*", "*/serviceAccounts/*", f"{SECRET}*"),
        denied=(Denied(permission="monitoring.timeSeries.list"),),
        quotas={H100S: Quota(limit=0, region="us-east4")},
    )
    found = checked(config(model="meta/llama@1"))
    assert found["bucket"].status == "refused"
    assert "gcloud storage buckets create gs://local-bucket --project=local-project" in (found["bucket"].hint or "")
    assert found["service-account"].status == found["job"].status == "refused"
    # Secret Manager itself tells "no permission" and "not there" apart for nobody.
    assert found["secrets"].status == "not checked" and "there is no such secret" in found["secrets"].text
    assert found["tokenizer"].status == "refused" and "gated" in found["tokenizer"].text
    assert found["model"].status == "ok"
    assert "Without monitoring.timeSeries.list some of the checks can't be made" in found["caller"].text
    assert found["quota"].status == "refused" and "a limit of 0" in found["quota"].text


def test_what_only_others_may_ask_is_left_open(start, secret, hub):
    start(
        secrets=secret,
        engines={"default": Engine(command=("serve", "{model}"))},
        denied=(Denied(permission="iam.serviceAccounts.getAccessToken"),),
    )
    variants = [{"id": "baseline"}, {"id": "eagle3", "args": ["--speculative-algo=EAGLE3"]}]
    serving = {"machine_type": "ct4p-hightpu-4t", "accelerator": {"type": "TPU_V4_POD", "count": 4}}
    found = checked(config(model="meta/llama@1", serving=serving, variants=variants))
    assert found["job"].status == "not checked" and "serviceAccountTokenCreator" in (found["job"].hint or "")
    assert found["quota"].status == "not checked" and "TPU_V4_POD" in found["quota"].text
    assert found["model"].status == "refused" and "is not found" in found["model"].text
    reserved = {
        "reservation": "projects/p/zones/z/reservations/r",
        "machine_type": "g2-standard-12",
        "accelerator": {"type": "NVIDIA_L4"},
    }
    found = checked(config(serving=reserved, service_account=None, pipeline_root=None))
    assert found["quota"].status == "not checked" and "the reservation" in found["quota"].text
    assert found["service-account"].status == found["job"].status == "not checked"
    assert found["bucket"].status == "refused" and "`pipeline_root` is missing" in found["bucket"].text
    # The account that asks may be the job's own: it needs nobody's leave.
    assert checked(config(service_account=CALLER))["job"].status == "ok"


def test_existing_endpoints_are_looked_at(start):
    start(slots=2)
    place = Place("local-project", "us-central1")

    def deployed(name, *args):
        spec = VariantSpec(id=name, model="owner/name", serving=Serving(image="tiny", args=args))
        return vertex.deploy(place, "earlier", spec).endpoint

    plain, eagle = (
        deployed("plain", "--words=3"),
        deployed("eagle", "--words=3", "--speculative-algo=EAGLE3", "--top=1"),
    )
    there = [{"id": "baseline", "endpoint": plain}, {"id": "eagle3", "endpoint": eagle}]

    def variants(given, **fields):
        return next(planning.checks(config(variants=given, model=None, **fields)))

    found = variants(there)
    assert found.status == "refused" and "eagle3 differs in top (not set and 1)" in found.text
    same = [{"id": "baseline", "endpoint": plain}, {"id": "again", "endpoint": plain}]
    found = variants(same, baseline_again="again")
    assert found.status == "ok" and "the baseline once more" in found.text
    gone = [{"id": "baseline", "endpoint": plain}, {"id": "eagle3", "endpoint": f"{plain}x"}]
    assert variants(gone).status == "refused"
    url = [{"id": "baseline", "endpoint": plain}, {"id": "eagle3", "url": "http://127.0.0.1:9/v1"}]
    found = variants(url)
    assert found.status == "not checked" and "its URL can't be seen" in found.text


def test_without_credentials_the_cloud_is_not_asked(start, monkeypatch, tmp_path, hub):
    start()
    monkeypatch.setenv("GOOGLE_APPLICATION_CREDENTIALS", str(tmp_path / "none.json"))
    found = checked(config(model="meta/llama@1"))
    names = {"credentials", "bucket", "caller", "service-account", "job", "secrets", "quota", "model", "tokenizer"}
    assert of_status(found, "not checked") >= names
    assert of_status(found, "refused") == set()
    assert "hf_token_secret" not in found["tokenizer"].text


def test_another_account_is_asked_for_as_itself_and_quotas_have_limits(start):
    accelerators = {"NVIDIA_L4": -1, "NVIDIA_TESLA_T4": 0, "NVIDIA_H200_141GB": 7}
    ids = {quota_id(name, spot=True): limit for name, limit in accelerators.items()}
    start(
        denied=(Denied(permission="b", account=JOB), Denied(permission="a", account=CALLER)),
        quotas={name: Quota(limit=limit) for name, limit in ids.items()},
    )
    assert iam.held("project", "projects/p", ["a", "b"]) == {"b"}
    assert iam.held("project", "projects/p", ["a", "b"], account=JOB) == {"a"}
    assert iam.held("bucket", "some", ["a", "b"], account=JOB) == {"a"}
    assert iam.held("bucket", "some", ["a"]) == set()
    for name, limit in ids.items():
        found = quota(Place("p", "us-central1"), name)
        assert (found.limit, found.used) == (None if limit == -1 else limit, 0)
