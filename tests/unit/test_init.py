"""`eagle-bench init`: whatever flags and answers it takes, the file is one that is taken, and says what they said."""

from __future__ import annotations

import json
import os
import pty
import subprocess
import sys

import pytest
import yaml
from click.testing import CliRunner

from eagle_bench import config_file, config_template
from eagle_bench.commands.init import command
from eagle_bench.config import ON_VERTEX_AI, Config
from eagle_bench.errors import InputError

DEPLOY = [
    "--project",
    "p",
    "--bucket",
    "gs://b/x",
    "--model",
    "meta/llama4@scout",
    "--tokenizer",
    "a/b",
    "--image",
    "sglang:1",
]


def written(path, *arguments):
    done = CliRunner().invoke(command, [*arguments, "-o", str(path)])
    assert done.exit_code == 0, done.output
    return read(path), done.output


def read(path):
    """A config that `init` wrote; nobody has filled in yet what it could not know."""
    return config_file.parse(path.read_text(), filled=False)


def test_two_servers_that_run(tmp_path):
    urls = ["--url", "plain=http://127.0.0.1:8000/v1", "--url", "eagle3=http://127.0.0.1:8001/v1"]
    config, said = written(tmp_path / "bench.yaml", *urls)
    assert [variant.url for variant in config.variants] == ["http://127.0.0.1:8000/v1", "http://127.0.0.1:8001/v1"]
    assert config.baseline == "plain"
    assert config.project is None and config.pipeline_root is None  # nobody has to invent what no run here needs
    assert f"eagle-bench run {tmp_path / 'bench.yaml'}" in said


def test_two_servers_for_a_job_on_vertex_ai(tmp_path):
    urls = ["--url", "plain=http://127.0.0.1:8000/v1", "--url", "eagle3=http://127.0.0.1:8001/v1", "--tokenizer", "a/b"]
    config, said = written(tmp_path / "bench.yaml", *urls, "--project", "p", "--bucket", "gs://b/x")
    config_file.require(config, ON_VERTEX_AI)
    assert config.tokenizer == "a/b"
    assert f"eagle-bench submit {tmp_path / 'bench.yaml'}" in said


def test_a_url_without_a_path_gets_the_usual_one_and_that_is_said(tmp_path):
    urls = ["--url", "plain=http://10.0.0.7:8000/", "--url", "eagle3=https://gateway/openai"]
    config, said = written(tmp_path / "bench.yaml", *urls)
    assert [variant.url for variant in config.variants] == ["http://10.0.0.7:8000/v1", "https://gateway/openai"]
    assert "http://10.0.0.7:8000/v1 is written" in said
    assert "gateway" not in said


def test_two_endpoints_that_run(tmp_path):
    name = "projects/p/locations/us-central1/endpoints/"
    rest = ["--project", "p", "--bucket", "gs://b/x", "--tokenizer", "a/b", "--concurrency", "1,8"]
    config, _ = written(tmp_path / "b.yaml", "--endpoint", f"baseline={name}1", "--endpoint", f"eagle3={name}2", *rest)
    assert config.variants[1].endpoint == f"{name}2"
    config_file.require(config, ON_VERTEX_AI)
    assert config.concurrency == (1, 8)


@pytest.mark.parametrize(
    ("engine", "flag"), [("sglang", "--speculative-algo=EAGLE3"), ("vllm", "--speculative-config=")]
)
def test_a_model_that_is_deployed_twice(tmp_path, engine, flag):
    config, said = written(tmp_path / "b.yaml", *DEPLOY, "--engine", engine, "--machine-type", "g2-standard-24")
    assert (config.serving.accelerator.type, config.serving.accelerator.count) == ("NVIDIA_L4", 2)
    assert config.variants[1].args[0].startswith(flag)
    assert "in the place of DRAFT-MODEL" in said
    assert "in the place of MODEL-FOLDER" in said
    with pytest.raises(InputError) as refused:
        config_file.load(tmp_path / "b.yaml")
    weights, draft = str(refused.value).splitlines()
    assert weights.endswith(
        "b.yaml: `serving.args[0]` is not filled in. Put the gs:// folder of the model's weights in the place of MODEL-FOLDER."
    )
    assert "`variants[1].args[" in draft
    assert draft.endswith("Put the draft model, a gs:// folder or a Hugging Face id, in the place of DRAFT-MODEL.")
    filled = ["--weights", "gs://b/MODEL-FOLDER", "--draft", "a/draft-model"]
    written(tmp_path / "filled.yaml", *DEPLOY, "--engine", engine, *filled)
    assert config_file.load(tmp_path / "filled.yaml").variants[1].args


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        ([], "Give --project"),
        (DEPLOY[2:], "Give --project"),
        ([*DEPLOY, "--accelerator", "L4"], "TYPE=COUNT"),
        ([*DEPLOY, "--model", "img:1"], "--model 'img:1': it must be publisher/model@version of Model Garden, or a"),
        ([*DEPLOY, "--model", "llama"], "or a Hugging Face id (owner/name)"),
        ([*DEPLOY, "--tokenizer", "img:1"], "--tokenizer 'img:1': it must be a Hugging Face id (owner/name), a gs://"),
        ([*DEPLOY, "--accelerator", "NVIDIA_H1000=8"], "Did you mean `NVIDIA_H100_80GB`?"),
        ([*DEPLOY, "--accelerator", "NVIDIA_L4=2"], "2 NVIDIA_L4 are in: g2-standard-24"),
        ([*DEPLOY, "--service-account", "bench"], "an account's e-mail address"),
        ([*DEPLOY, "--concurrency", "one"], "numbers with commas"),
        (["--url", "http://x"], "ID=VALUE"),
        (["--url", "a=http://x", "--url", "a=http://y"], "the id 'a'"),
        (["--url", "a=127.0.0.1:18500"], "'--url': a=127.0.0.1:18500: `http://` is missing, as in a=http://127.0.0.1"),
        (["--url", "a=gateway.example.com/v1"], "`http://` is missing, as in a=http://gateway.example.com/v1."),
        (["--url", "a=ftp://x/v1"], "'--url': a=…: it must start with http://"),
        (["--url", "a=http://x/v1/chat/completions"], "'--url': a=http://x/v1/chat/completions ends in"),
        (["--url", "a=http://x:0/v1"], "its host or port can't be read"),
        ([*DEPLOY, "--project", "a b"], "`project`"),
        (["--url", "a=http://h:1/v1", "--url", "b=http://h:2/v1", "--project", "p"], "Give --bucket"),
        (
            ["--url", "a=http://h:1/v1", "--url", "b=http://h:2/v1", "--draft", "d", "--image", "i"],
            "--draft, --image: not for",
        ),
    ],
)
def test_what_can_not_be_is_refused_and_nothing_written(tmp_path, arguments, words):
    done = CliRunner().invoke(command, [*arguments, "-o", str(tmp_path / "b.yaml")])
    assert done.exit_code != 0
    assert words in done.output + str(done.exception)
    assert not list(tmp_path.iterdir())


@pytest.mark.parametrize(
    "url", ["planted", "planted.planted", "https://me:planted@host/v1", "me:planted@host:80", "http://h/v1?key=planted"]
)
def test_what_may_be_a_secret_is_not_said_again(tmp_path, url):
    done = CliRunner().invoke(command, ["--url", f"a={url}", "-o", str(tmp_path / "b.yaml")])
    assert done.exit_code == 2
    assert "'--url': a=" in done.output
    assert "planted" not in done.output


def test_a_file_that_is_there_is_kept(tmp_path):
    path = tmp_path / "bench.yaml"
    path.write_text("mine")
    done = CliRunner().invoke(command, [*DEPLOY, "-o", str(path)])
    assert "is there already" in str(done.exception)
    assert path.read_text() == "mine"
    assert written(path, *DEPLOY, "--force")


def test_at_a_terminal_it_asks(tmp_path):
    """Through a real terminal, as a person would."""
    ours, theirs = pty.openpty()
    arguments = [sys.executable, "-m", "eagle_bench", "init", "-o", "bench.yaml", "--engine", "vllm"]
    with subprocess.Popen(
        arguments, stdin=theirs, stdout=subprocess.PIPE, stderr=subprocess.PIPE, cwd=tmp_path
    ) as process:
        os.close(theirs)
        answers = [
            "my-project",
            "",
            "b/x",  # no folder: it asks again
            "gs://b/x",
            "",  # the account: none
            "hf_abc",  # the token in the place of its name: again, and not a word of it
            "projects/p/secrets/hf/versions/1",
            "img:1",  # no model: again
            "meta-llama/Llama-3.1-8B-Instruct",
            "",
            "vllm:1",
            "",
            "",
            "",
            "gs://d",
            "",
            "many",  # no levels: again
            "1,3",
        ]
        os.write(ours, "".join(f"{answer}\n" for answer in answers).encode())
        _, complaints = process.communicate()
    os.close(ours)
    assert process.returncode == 0, complaints
    config = read(tmp_path / "bench.yaml")
    assert config.tokenizer == "meta-llama/Llama-3.1-8B-Instruct"
    assert '"model": "gs://d"' in config.variants[1].args[0]
    assert config.concurrency == (1, 3)
    assert config.serving.args[-1] == "--tensor-parallel-size=8"
    assert config.serving.shared_memory_mb == 16384
    assert config.service_account is None
    assert config.hf_token_secret == "projects/p/secrets/hf/versions/1"
    assert b"'b/x': it must be a gs:// folder" in complaints
    assert b"hf_token_secret: it must be a name" in complaints
    assert b"'img:1': it must be publisher/model@version" in complaints
    assert b"hf_abc" not in complaints


def at_a_terminal(folder, *answers):
    ours, theirs = pty.openpty()
    arguments = [sys.executable, "-m", "eagle_bench", "init", "-o", "bench.yaml"]
    pipes = {"stdin": theirs, "stdout": subprocess.PIPE, "stderr": subprocess.PIPE}
    with subprocess.Popen(arguments, cwd=folder, text=True, **pipes) as process:
        os.close(theirs)
        os.write(ours, "".join(f"{answer}\n" for answer in answers).encode())
        _, said = process.communicate(timeout=60)
    os.close(ours)
    return process.returncode, said


def test_at_a_terminal_without_flags_it_asks_first_whether_servers_run(tmp_path):
    answers = [
        "",  # one is needed
        "both",  # no answer: again
        "urls",
        "plain",
        "127.0.0.1:8000",  # no scheme: again
        "http://127.0.0.1:8000/v1",
        "plain",  # taken: again
        "",
        "",  # a URL is needed
        "http://127.0.0.1:8001",
        "",  # the tokenizer: none
        "builtin",
        "1,2",
    ]
    status, said = at_a_terminal(tmp_path, *answers)
    assert status == 0, said
    config = config_file.load(tmp_path / "bench.yaml")
    assert [(each.id, each.url) for each in config.variants] == [
        ("plain", "http://127.0.0.1:8000/v1"),
        ("eagle3", "http://127.0.0.1:8001/v1"),
    ]
    assert (config.baseline, config.project, config.tokenizer, config.concurrency) == ("plain", None, None, (1, 2))
    assert said.startswith("Compare servers that run already, or deploy a model? [urls/deploy]")
    assert said.count("an answer is needed here; Ctrl-C leaves") == 2
    assert "'both': it must be urls or deploy, or the first server's URL." in said
    assert "`http://` is missing" in said
    assert "'plain' is the first server's" in said


def test_at_a_terminal_a_url_may_stand_in_the_place_of_the_word(tmp_path):
    answers = [
        "127.0.0.1:8000/v1",  # no scheme: again
        "http://127.0.0.1:8000/v1",
        "http://127.0.0.1:8001/v1",  # no id: again
        "Plain",  # nor this
        "plain",
        "",
        "http://127.0.0.1:8001/v1",
        *[""] * 3,
    ]
    status, said = at_a_terminal(tmp_path, *answers)
    assert status == 0, said
    assert [(each.id, each.url) for each in config_file.load(tmp_path / "bench.yaml").variants] == [
        ("plain", "http://127.0.0.1:8000/v1"),
        ("eagle3", "http://127.0.0.1:8001/v1"),
    ]
    assert "`http://` is missing" in said
    assert said.count("an id is 1 to 40 of a-z, 0-9 and -, starting with a letter") == 2
    assert said.count("Its URL") == 1


@pytest.mark.parametrize(("word", "asked"), [("Y", "Id of the first server"), ("no", "Google Cloud project")])
def test_at_a_terminal_yes_and_no_are_understood(tmp_path, word, asked):
    ours, theirs = pty.openpty()
    arguments = [sys.executable, "-m", "eagle_bench", "init", "-o", "bench.yaml"]
    with subprocess.Popen(arguments, cwd=tmp_path, stdin=theirs, stderr=subprocess.PIPE, text=True) as process:
        os.close(theirs)
        os.write(ours, f"{word}\n\x04".encode())  # and the end of what is typed
        _, said = process.communicate(timeout=60)
    os.close(ours)
    assert asked in said


def test_at_a_terminal_without_flags_a_model_can_be_deployed(tmp_path):
    status, said = at_a_terminal(tmp_path, "deploy", "p", "", "gs://b/x", "", "", "a/b", "", "vllm:1", *[""] * 7)
    assert status == 0, said
    assert read(tmp_path / "bench.yaml").project == "p"
    assert "Serving container, which gets the speculative arguments, such as us-docker.pkg.dev/" in said
    assert "Google Cloud project:" in said


def test_at_a_terminal_it_asks_nothing_when_flags_say_all_that_has_no_default(tmp_path):
    """A notebook's `!` is a terminal, too, at which nobody answers."""
    ours, theirs = pty.openpty()
    arguments = [sys.executable, "-m", "eagle_bench", "init", "-o", str(tmp_path / "b.yaml"), *DEPLOY]
    done = subprocess.run(arguments, stdin=theirs, capture_output=True, timeout=60, check=True)
    os.close(ours)
    os.close(theirs)
    assert done.stderr == b""
    assert read(tmp_path / "b.yaml").serving.machine_type == "a3-highgpu-8g"


def test_account_and_secret_are_written_where_they_are_given(tmp_path):
    named = {
        "service_account": "eagle-bench-run@p.iam.gserviceaccount.com",
        "hf_token_secret": "projects/p/secrets/hf-token/versions/latest",
    }
    flags = [word for name, value in named.items() for word in (f"--{name.replace('_', '-')}", value)]
    config, _ = written(tmp_path / "with.yaml", *DEPLOY, *flags)
    assert {name: getattr(config, name) for name in named} == named
    config, _ = written(tmp_path / "without.yaml", *DEPLOY)
    assert {name: getattr(config, name) for name in named} == dict.fromkeys(named)
    endpoints = [
        "--endpoint",
        "baseline=projects/p/locations/r/endpoints/1",
        "--endpoint",
        "b=projects/p/locations/r/endpoints/2",
    ]
    config, _ = written(tmp_path / "endpoints.yaml", *endpoints, *DEPLOY[:4], *DEPLOY[6:8], *flags)
    assert {name: getattr(config, name) for name in named} == named


def test_a_token_in_the_place_of_its_name_is_refused_and_not_said_again(tmp_path):
    done = CliRunner().invoke(command, [*DEPLOY, "--hf-token-secret", "hf_abc", "-o", str(tmp_path / "b.yaml")])
    assert done.exit_code == 2
    assert "--hf-token-secret: it must be a name" in done.output
    assert "hf_abc" not in done.output


def test_all_flags_that_are_missing_are_named_at_once(tmp_path):
    done = CliRunner().invoke(command, ["--project", "p", "-o", str(tmp_path / "b.yaml")])
    assert done.exit_code == 2
    assert "Give --bucket, --model, --image: there is no terminal to ask at. For a model of Model Garden" in done.output
    assert "give --tokenizer, too" in " ".join(done.output.split())
    done = CliRunner().invoke(command, ["--model", "meta/llama4@scout", "-o", str(tmp_path / "b.yaml")])
    assert "Give --project, --bucket, --tokenizer, --image: there is no terminal to ask at." in done.output
    assert "too." not in done.output


@pytest.mark.parametrize("name", ["a/b", "a/b@main", "gs://b/x", "/models/x", "./x", "here"])
def test_a_tokenizer_is_an_id_or_a_folder(tmp_path, monkeypatch, name):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "here").mkdir()
    urls = ["--url", "plain=http://127.0.0.1:8000/v1", "--url", "eagle3=http://127.0.0.1:8001/v1"]
    assert written(tmp_path / "b.yaml", *urls, "--tokenizer", name)[0].tokenizer == name


def test_every_line_that_is_offered_can_be_taken():
    """Without its `#`, each offered field is one that the config takes."""
    values = {"project": "p", "location": "us-central1", "model": "a/b", "variants": [{"id": "baseline"}, {"id": "b"}]}
    text = config_template.render({**values, "tokenizer": "a/b", "workload": {"seed": 1}})
    assert Config.model_validate(yaml.safe_load(text)).workload.seed == 1
    offered = "".join(
        f"{line.replace('#', '', 1) if line.lstrip().startswith('#') and '# ' not in line else line}\n"
        for line in text.splitlines()
    )
    data = yaml.safe_load(offered)
    assert set(data) == set(Config.model_fields) - {"serving"}
    assert set(data["workload"]) == set(Config.model_fields["workload"].annotation.model_fields)
    data |= {"baseline_again": "b"}
    assert config_file.validate(data).price_per_hour == 88.0


@pytest.mark.parametrize(
    ("there", "flags", "levels", "each"),
    [
        (7000, [], (1, 2, 4, 6, 8, 10), 1000),
        (1300, [], (1, 2, 4, 6, 8, 10), 200),
        (700, [], (1, 2, 4), 200),
        (194, [], (1, 2, 4), 50),
        (193, [], (1, 2), 50),
        (700, ["--concurrency", "1,8"], (1, 8), 200),
    ],
)
def test_a_file_is_given_the_levels_that_it_has_prompts_for(tmp_path, there, flags, levels, each):
    prompts = tmp_path / "mine.jsonl"
    prompts.write_text("".join(json.dumps({"prompt": f"{i} ways to be told apart"}) + "\n" for i in range(there)))
    urls = ["--url", "plain=http://127.0.0.1:8000/v1", "--url", "eagle3=http://127.0.0.1:8001/v1"]
    config, said = written(tmp_path / "bench.yaml", *urls, "--dataset", str(prompts), *flags)
    assert (config.concurrency, config.workload.prompts_per_level) == (levels, each)
    assert "warning" not in said


def test_a_file_with_too_few_prompts_is_warned_of(tmp_path):
    prompts = tmp_path / "mine.jsonl"
    prompts.write_text(json.dumps({"prompt": "Why is the sky blue?"}) + "\n")
    urls = ["--url", "plain=http://127.0.0.1:8000/v1", "--url", "eagle3=http://127.0.0.1:8001/v1"]
    config, said = written(tmp_path / "bench.yaml", *urls, "--dataset", str(prompts))
    assert config.workload.prompts_per_level == 1000
    assert "warning" in said and "1 of the 1 conversations can be used" in said
    prompts.write_text("{")
    assert "warning" in written(tmp_path / "bench.yaml", *urls, "--dataset", str(prompts), "--force")[1]
