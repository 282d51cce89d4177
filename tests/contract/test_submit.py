"""`eagle-bench submit` through Google's own client against Local Vertex: the request, the job, its end."""

from __future__ import annotations

import json
import subprocess
import sys

import pytest
import yaml
from google.cloud import aiplatform_v1
from google.protobuf import json_format

from eagle_bench.adapters.pipeline_template import compile_template, sha256_of
from eagle_bench.adapters.template_version import read_template
from eagle_bench.errors import InputError

CONFIG = {
    "project": "local-project",
    "location": "us-central1",
    "pipeline_root": "gs://local-bucket/eagle-bench",
    "service_account": "bench@local-project.iam.gserviceaccount.com",
    "hf_token_secret": "projects/local-project/secrets/hf-token/versions/latest",
    "variants": [
        {"id": "baseline", "url": "http://127.0.0.1:9/v1", "served_model": "m"},
        {"id": "eagle3", "url": "http://127.0.0.1:9/eagle3/v1", "served_model": "m"},
    ],
    "workload": {"prompts_per_level": 50, "max_output_tokens": 16, "request_timeout_s": 5.0},
    "concurrency": [1],
}


@pytest.fixture
def config(tmp_path):
    path = tmp_path / "bench.yaml"
    path.write_text(yaml.safe_dump(CONFIG))
    return path


def submit(*arguments):
    command = [sys.executable, "-m", "eagle_bench", "submit", *(str(argument) for argument in arguments)]
    return subprocess.run(command, capture_output=True, text=True, check=False)


def test_a_dry_run_prints_the_request_and_sends_nothing(config, tmp_path):
    template = tmp_path / "template.yaml"
    compile_template(template)
    done = submit(config, "--dry-run", "--template", template, "--label", "team=serving")
    assert done.returncode == 0, done.stderr
    request = json.loads(done.stdout)
    job = request["pipelineJob"]
    # The API's own definition takes it.
    json_format.ParseDict(job, aiplatform_v1.PipelineJob.pb()(), ignore_unknown_fields=False)
    assert job["labels"]["team"] == "serving"
    assert job["runtimeConfig"]["gcsOutputDirectory"] == CONFIG["pipeline_root"]
    values = job["runtimeConfig"]["parameterValues"]
    assert values["environment"]["pipeline template"] == f"sha256:{sha256_of(template)}"
    assert values["hf_token_secret"] == CONFIG["hf_token_secret"]
    assert [variant["id"] for variant in values["variants"]] == ["baseline", "eagle3"]


@pytest.mark.parametrize(
    ("change", "words"),
    [
        ({"pipeline_root": None}, "`pipeline_root` is missing"),
        ({"project": None}, "`project` is missing: id of the Google Cloud project"),
        ({"location": None}, "`location` is missing: a region, such as us-central1; a job on Vertex AI needs it."),
        ({"pipeline_root": "/tmp/x"}, "`pipeline_root`: '/tmp/x' can't be used"),
    ],
)
def test_a_config_that_can_not_be_submitted_is_refused(config, change, words):
    config.write_text(yaml.safe_dump({**CONFIG, **change}))
    done = submit(config, "--dry-run")
    assert done.returncode == 2
    assert words in done.stderr


def test_a_template_that_is_not_there_is_refused(config, tmp_path):
    done = submit(config, "--dry-run", "--template", tmp_path / "none.yaml")
    assert done.returncode == 2
    assert "there is no such file" in done.stderr


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (["--label", "A B=C"], "--label"),
        (["--label", "a=1", "--label", "a=2"], "twice"),
        (["--label", f"a={'x' * 100}"], "--label"),
        (["--image", "a b"], "--image"),
        (["--image", ""], "--image"),
    ],
)
def test_wrong_options_are_refused(config, arguments, words):
    done = submit(config, "--dry-run", *arguments)
    assert done.returncode == 2, done.stderr
    assert words in done.stderr


def test_a_file_that_is_no_template_is_refused(config):
    done = submit(config, "--dry-run", "--template", config)
    assert done.returncode == 2
    assert "not a pipeline template" in done.stderr


@pytest.fixture(scope="module")
def compiled(tmp_path_factory):
    path = tmp_path_factory.mktemp("template") / "eagle-benchmark.yaml"
    compile_template(path)
    return path.read_text()


@pytest.mark.parametrize(
    ("edit", "why"),
    [
        (lambda text: "", "it holds no keys and values"),
        (lambda text: "- 1\n", "it holds no keys and values"),
        (lambda text: "a: " + "[" * 20_000, "it is nested too deeply"),
        (lambda text: f"{text}---\nplatforms: {{}}\n", "but found another document"),
        (lambda text: text.replace("schemaVersion: 2.1.0\n", ""), "it has no `schemaVersion`"),
        (lambda text: text.replace("schemaVersion: 2.1.0", "schemaVersion: 2.1"), "schemaVersion"),
        (lambda text: text + "deploymentSpec: 3\n", "deploymentSpec"),
        (lambda text: text + "deploymentSpec: {executors: {x: 1}}\n", "executors"),
        (lambda text: text.encode("utf-16"), "it is no text in UTF-8"),
    ],
)
def test_a_template_that_was_edited_to_pieces_is_refused_with_what_is_wrong(compiled, tmp_path, edit, why):
    path, found = tmp_path / "template.yaml", edit(compiled)
    path.write_bytes(found if isinstance(found, bytes) else found.encode())
    with pytest.raises(InputError, match=r"not a pipeline template that can be used: .*eagle-bench compile") as caught:
        read_template(path)
    assert why in caught.value.message


@pytest.mark.parametrize(
    ("template", "words"),
    [
        (
            "http://us-kfp.pkg.dev/p/r/pkg/v1",
            "is no address in Artifact Registry. Allowed: https://LOCATION-kfp.pkg.dev",
        ),
        ("gs://bucket/template.yaml", "is no address in Artifact Registry"),
        ("", "--template '': there is no such file"),
    ],
)
def test_where_a_template_can_not_be_is_said(config, template, words):
    done = submit(config, "--dry-run", "--template", template)
    assert done.returncode == 2, done.stderr
    assert words in done.stderr


def test_what_is_no_mapping_is_no_template_for_submit_either(config, tmp_path):
    (tmp_path / "empty.yaml").write_text("")
    done = submit(config, "--dry-run", "--template", tmp_path / "empty.yaml")
    assert done.returncode == 2, done.stderr
    assert "it holds no keys and values" in done.stderr


@pytest.mark.parametrize("name", ["x.txt", "noext", "missing/../..", "/proc/x.yaml"])
def test_a_template_can_not_be_written_everywhere(tmp_path, name):
    command = [sys.executable, "-m", "eagle_bench", "compile", "-o", str(tmp_path / name)]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert done.returncode == 2, done.stderr
    assert "Traceback" not in done.stderr


def test_a_tokenizer_that_only_this_machine_has_is_refused(config, tmp_path, monkeypatch):
    monkeypatch.delenv("EAGLE_BENCH_VERTEX_API", raising=False)
    config.write_text(yaml.safe_dump({**CONFIG, "tokenizer": str(tmp_path)}))
    done = submit(config)
    assert done.returncode == 2
    assert "`tokenizer`" in done.stderr


def test_vertex_ai_out_of_reach_is_said(config, monkeypatch, tmp_path, server):
    monkeypatch.setenv("EAGLE_BENCH_VERTEX_API", "http://127.0.0.1:9")
    done = submit(config, "--skip-checks")
    assert done.returncode == 1
    assert "submit the pipeline job" in done.stderr
    assert "Traceback" not in done.stderr


def test_a_hub_out_of_reach_from_here_can_be_left_to_the_job(config, monkeypatch, server):
    monkeypatch.setenv("HF_ENDPOINT", "http://127.0.0.1:9")
    config.write_text(yaml.safe_dump({**CONFIG, "hf_token_secret": None, "tokenizer": "some/tokenizer"}))
    done = submit(config)
    assert done.returncode == 1
    assert "can't be reached for" in done.stderr
    assert "--skip-checks" in done.stderr


def test_arguments_that_no_image_would_get_are_refused(config):
    deployed = {"model": "owner/name", "tokenizer": "owner/name", "serving": {"args": ["--tp=8"]}}
    config.write_text(yaml.safe_dump({**CONFIG, **deployed, "variants": [{"id": "baseline"}, {"id": "eagle3"}]}))
    done = submit(config)
    assert done.returncode == 2
    assert "`serving.args` is given without `serving.image`" in done.stderr


def test_prompts_that_the_job_would_look_for_in_vain_are_refused_before_anything_is_made(config, server):
    mine = config.parent / "mine.jsonl"
    mine.write_text("\n".join(json.dumps({"prompt": f"{n}?"}) for n in range(120)))
    load = {**CONFIG["workload"], "dataset": "mine.jsonl"}
    config.write_text(yaml.safe_dump({**CONFIG, "hf_token_secret": None, "workload": load}))
    words = [sys.executable, "-m", "eagle_bench", "submit", config.name]
    done = subprocess.run(words, capture_output=True, text=True, check=False, cwd=config.parent)
    assert done.returncode == 2
    assert "`workload.dataset`: 'mine.jsonl' is looked for in another folder by a job of Local Vertex." in done.stderr
    assert f"Give the whole path, '{mine}'." in done.stderr
    assert "submitted" not in done.stdout


def test_a_secret_that_only_the_job_may_read_is_left_to_it(config, server, order):
    order("api-status", match="/secrets/hf-token/", status=403, times=None)
    done = submit(config)
    assert done.returncode == 0, done.stderr
    assert "data and tokenizer: not looked for." in done.stderr
    assert CONFIG["hf_token_secret"] in done.stderr


def test_servers_that_are_down_here_may_be_up_for_the_job(config, server):
    config.write_text(yaml.safe_dump({**CONFIG, "hf_token_secret": None}))
    done = submit(config)
    assert done.returncode == 0, done.stderr
    assert "warning: baseline: http://127.0.0.1:9/v1 can't be reached: " in done.stderr
    assert "Where the run asks from, it may be otherwise." in done.stderr
    assert submit(config, "--skip-checks").stderr.count("warning") == 0


def test_what_can_be_done_next_is_said(config, server):
    done = submit(config, "--skip-checks")
    assert done.returncode == 0, done.stderr
    name = done.stdout.splitlines()[0].removeprefix("submitted ")
    assert f"eagle-bench fetch {name}" in done.stdout
    place = "--project local-project --location us-central1"
    assert f"eagle-bench cleanup {name.rsplit('/', 1)[-1]} {place} --cancel --yes" in done.stdout
