"""Servers at URLs before a run: what stands there is told by asking it, and one that is down ends the matter at once."""

from __future__ import annotations

import subprocess
import sys
import threading
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

import pytest
import yaml

from eagle_bench import cli, config_file, planning
from eagle_bench.adapters import running_servers
from eagle_bench.adapters.running_servers import look
from eagle_bench.errors import InputError
from eagle_bench.planning.quick_checks import host_checks, require_image, server_checks

DOWN = "http://127.0.0.1:9/v1"


class Handler(BaseHTTPRequestHandler):
    """Answers paths as the server's `answers` say, and 404 to others; None: never, while the test runs."""

    def do_GET(self):
        status = self.server.answers.get(self.path, 404)
        self.server.asked.append((self.path, self.headers.get("Authorization")))
        if status is None:
            self.server.over.wait(60)
            return
        self.send_response(status)
        self.send_header("Content-Length", "0")
        self.end_headers()

    def log_message(self, *_):
        pass


@pytest.fixture
def serve():
    """Start a server with these answers; its URL comes back, without a path."""
    running = []

    def start(answers):
        server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        server.answers, server.asked, server.over = answers, [], threading.Event()
        threading.Thread(target=server.serve_forever, daemon=True).start()
        running.append(server)
        return f"http://127.0.0.1:{server.server_address[1]}"

    start.running = running
    yield start
    for server in running:
        server.over.set()
        server.shutdown()
        server.server_close()


def write(path, **urls):
    variants = [{"id": name, "url": url} for name, url in urls.items()]
    fields = {"project": "local-project", "location": "us-central1", "pipeline_root": "gs://local-bucket/x"}
    workload = {"dataset": "builtin", "prompts_per_level": 50}
    path.write_text(yaml.safe_dump({**fields, "variants": variants, "workload": workload, "concurrency": [1]}))
    return path


def plan(path, capsys, *arguments):
    with pytest.raises(SystemExit) as ended:
        cli.main(["plan", str(path), *arguments])
    return ended.value.code, " ".join(capsys.readouterr().out.split())


def test_whatever_a_server_answers_it_is_there(serve):
    for status in (200, 401, 404, 500):
        (seen,) = look([f"{serve({'/v1/models': status})}/v1/"])
        assert seen.up, status
    for status in (429, 503):
        (seen,) = look([f"{serve({'/v1/models': status})}/v1"])
        assert seen.up is None and str(status) in seen.text


def test_an_api_below_the_root_is_found(serve):
    root = serve({"/v1/models": 401})
    (seen,) = look([root])
    assert (seen.up, seen.meant) == (False, f"{root}/v1")
    (seen,) = look([serve({"/models": 200})])  # a root that has it is one
    assert seen.up
    (seen,) = look([f"{root}/other"])  # a path that was written is not second-guessed
    assert seen.up


def test_silence_and_refusal_are_told_apart(serve, monkeypatch):
    monkeypatch.setattr(running_servers, "ANSWER_S", 0.2)
    silent = serve({"/v1/models": None})
    first, second = look([f"{silent}/v1", DOWN])
    assert first.up is None and "takes the connection" in first.text
    assert second.up is False and "can't be reached" in second.text
    with pytest.raises(InputError, match="port 99999"):
        look(["http://127.0.0.1:99999/v1"])


def test_servers_are_asked_as_they_are_measured_past_any_proxy(serve, monkeypatch):
    """The client knows no proxy: what one says of a server, or that it is down, is nothing of the server."""
    page = serve({"http://127.0.0.1:9/v1/models": 200})
    for name in ("http_proxy", "HTTP_PROXY", "all_proxy", "ALL_PROXY"):
        monkeypatch.setenv(name, page)
    direct = serve({"/v1/models": 200})
    there, down = look([f"{direct}/v1", DOWN])
    assert there.up and down.up is False
    assert serve.running[1].asked == [("/v1/models", None)] and serve.running[0].asked == []


def test_servers_that_run_need_no_cloud(serve, tmp_path, monkeypatch, capsys):
    monkeypatch.setenv("GOOGLE_APPLICATION_CREDENTIALS", str(tmp_path / "none.json"))
    baseline, eagle3 = (f"{serve({'/v1/models': 200})}/v1" for _ in range(2))
    path = write(tmp_path / "bench.yaml", baseline=baseline, eagle3=eagle3)
    status, said = plan(path, capsys)
    assert status == 0, said
    assert "baseline and eagle3 answer" in said
    assert "not needed google-cloud" in said
    for word in ("deploy", "Price", "Cost", "credentials", "bucket"):
        assert word not in said, word
    assert said.endswith(
        "Nothing is refused; a warning stands at hosts. 1 check was not made: there the run may still fail."
    )
    # With what only `submit` needs, the cloud is asked after all.
    status, said = plan(path, capsys, "--image", "registry.example.com/bench:1")
    assert status == 0 and "bucket" in said and "no Google credentials" in said


SIDE_BY_SIDE = "measured side by side they may slow each other. Measure one after the other with `bench`"


@pytest.mark.parametrize(
    ("urls", "where"),
    [
        (["http://h.example:8000/v1", "http://H.example:8001/v1"], "baseline and b both run on h.example"),
        (["http://h.example/a/v1", "https://h.example/b/v1", "http://i/v1"], "baseline and b both run on h.example"),
        (
            ["http://10.0.0.1:1/v1", "http://10.0.0.1:2/v1", "http://10.0.0.1:3/v1"],
            "baseline, b and c all run on 10.0.0.1",
        ),
        (
            ["http://localhost:1/v1", "http://127.0.0.1:2/v1", "http://[::1]:3/v1"],
            "baseline, b and c all run on 127.0.0.1",
        ),
        (
            ["http://h:1/v1", "http://h:2/v1", "http://i:1/v1", "http://i:2/v1"],
            "baseline and b both run on h; c and d both run on i",
        ),
        (["http://h.example/v1", "http://i.example/v1"], None),
        (["http://10.0.0.1/v1", "http://127.0.0.1/v1"], None),
    ],
)
def test_servers_of_one_host_are_cautioned_against(urls, where, tmp_path):
    config = config_file.load(
        write(tmp_path / "bench.yaml", **dict(zip(("baseline", "b", "c", "d"), urls, strict=False)))
    )
    said = [f"{check.text} {check.hint}" for check in host_checks(config) if check.status == "warning"]
    assert said == ([f"{where}: {SIDE_BY_SIDE} (docs/two-endpoints.md)."] if where else [])


def test_a_run_says_at_its_start_that_two_servers_share_a_host(serve, tmp_path, capsys):
    """Here it ends before it begins, for a file that is not there."""
    baseline, eagle3 = (f"{serve({'/v1/models': 200})}/v1" for _ in range(2))
    path = write(tmp_path / "bench.yaml", baseline=baseline, eagle3=eagle3)
    with pytest.raises(SystemExit) as ended:
        cli.main(["run", str(path), "--out", str(tmp_path / "out"), "--engines", str(tmp_path / "none.yaml")])
    said = " ".join(capsys.readouterr().err.split())
    assert ended.value.code == 2
    assert f"warning: baseline and eagle3 both run on 127.0.0.1: {SIDE_BY_SIDE}" in said


def test_one_server_answers_in_the_singular(serve, tmp_path):
    """The other variant is deployed."""
    path = write(tmp_path / "bench.yaml", eagle3=f"{serve({'/v1/models': 200})}/v1")
    fields = yaml.safe_load(path.read_text())
    fields |= {"model": "some/model", "tokenizer": "some/model", "variants": [{"id": "baseline"}, *fields["variants"]]}
    (found,) = server_checks(config_file.validate(fields), reached_from_here=True)
    assert (found.status, found.text) == ("ok", "eagle3 answers.")


def test_a_server_that_is_down_is_refused_here_and_a_warning_elsewhere(serve, tmp_path, capsys):
    path = write(tmp_path / "bench.yaml", baseline=f"{serve({'/v1/models': 200})}/v1", eagle3=DOWN)
    status, said = plan(path, capsys)
    assert status == 2
    assert f"eagle3: {DOWN} can't be reached: " in said and f"curl {DOWN}/models" in said
    assert "It may not run: servers refused." in said
    found = planning.checks(config_file.load(path), images=["registry.example.com/bench:1"])
    servers = next(check for check in found if check.name == "servers")
    assert servers.status == "warning" and "it may be otherwise" in (servers.hint or "")


@pytest.mark.parametrize(
    ("serving", "field"),
    [({}, "variants[1].args"), ({"args": ["--tp=8"]}, "serving.args"), ({"port": 80}, "serving.port")],
)
def test_a_run_whose_arguments_no_image_would_get_ends_before_anything_is_made(
    serving, field, tmp_path, monkeypatch, capsys
):
    """The baseline alone could be deployed: nobody should wait for it."""
    path = write(tmp_path / "bench.yaml")
    variants = [{"id": "baseline"}, {"id": "eagle3", "args": ["--speculative-algo=EAGLE3"]}]
    given = {**yaml.safe_load(path.read_text()), "model": "a/b", "tokenizer": "a/b", "variants": variants}
    path.write_text(yaml.safe_dump({**given, "serving": serving}))
    monkeypatch.chdir(tmp_path)
    for command in (["run", str(path), "--out", "out"], ["submit", str(path), "--template", "none.yaml"]):
        with pytest.raises(SystemExit) as ended:
            cli.main(command)
        assert ended.value.code == 2
        assert f"`{field}` is given without `serving.image`" in capsys.readouterr().err, command
    assert list(tmp_path.iterdir()) == [path]
    require_image(config_file.validate({**given, "serving": {**serving, "image": "vllm:1"}}))


def test_a_run_ends_before_anything_is_made(serve, tmp_path):
    root = serve({"/v1/models": 200})
    path = write(tmp_path / "bench.yaml", baseline=root, eagle3=DOWN)
    out = tmp_path / "out"
    command = [sys.executable, "-m", "eagle_bench", "run", str(path), "--out", str(out)]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert done.returncode == 2, done.stderr
    assert f"baseline: {root} has no such API, {root}/v1 has." in done.stderr
    assert f"Write `url: {root}/v1` for baseline." in done.stderr
    assert done.stderr.count(f"eagle3: {DOWN} can't be reached") == 1
    assert not out.exists()
    assert serve.running[0].asked == [("/models", None), ("/v1/models", None)]
