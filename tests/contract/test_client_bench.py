"""`eagle-bench bench` as a person or a script uses it: arguments, files, exit status, what is printed."""

from __future__ import annotations

import json
import os
import shutil
import signal
import socket
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from eagle_bench.adapters.result_files import read_cells
from eagle_bench.adapters.vllm_client import Progress
from eagle_bench.cli import main
from eagle_bench.results import CellResult
from truth_server import oracle
from truth_server.process import TruthServer

QUICK = {"tokens": 12, "first_ms": 2, "token_ms": 0.5}


@pytest.fixture(autouse=True)
def _hup_is_heard() -> Iterator[None]:
    """Whoever runs the tests may ignore HUP, which a command would go on with; a handler it does not inherit."""
    before = signal.signal(signal.SIGHUP, lambda *_: None)
    yield
    signal.signal(signal.SIGHUP, before)


FORMS: dict[str, Callable[[list[str]], str]] = {
    "p.jsonl": lambda texts: "\n".join(json.dumps({"prompt": t}) for t in texts),
    "m.jsonl": lambda texts: "\n".join(json.dumps({"messages": [{"role": "user", "content": t}]}) for t in texts),
    "s.json": lambda texts: json.dumps(
        [{"id": str(i), "conversations": [{"from": "human", "value": t}]} for i, t in enumerate(texts)]
    ),
    "c.csv": lambda texts: "prompt\n" + "\n".join(texts),
}


def prompts(folder: Path, count: int = 20, form: str = "p.jsonl") -> Path:
    path = folder / form
    path.write_text(FORMS[form]([f"{i} reasons why the sky has colour number {i}" for i in range(count)]))
    return path


def bench(*arguments: object) -> int:
    with pytest.raises(SystemExit) as ended:
        main(["bench", *map(str, arguments)])
    return int(ended.value.code or 0)


def read(path: Path) -> CellResult:
    return CellResult.model_validate_json(path.read_text())


@pytest.mark.parametrize("form", FORMS)
def test_every_form_of_prompts_is_measured_whole(form: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    out = tmp_path / "new" / "cell.json"
    with TruthServer(**QUICK) as server:
        arguments = [
            "--base-url",
            server.url,
            "--concurrency",
            2,
            "--prompts",
            prompts(tmp_path, form=form),
            "--out",
            out,
        ]
        assert bench(*arguments) == 0
        journal = server.journal("reasons why")
    result = read(out)
    assert (
        result.counts.model_dump()
        == oracle.counts(journal)
        == {"requested": 20, "completed": 20, "failed": 0, "empty": 0}
    )
    assert len({entry["content"] for entry in journal}) == 20
    assert {entry["body"]["model"] for entry in journal} == {"truth"}
    printed = capsys.readouterr()
    assert all(name in printed.out for name in ("TPOT", "TTFT", "E2E", "tok/s", "0 of 20"))
    assert "round 3/3: 20/20 requests, 0 failed" in printed.err


def test_limit_variant_model_key_and_rounds_are_taken(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    out = tmp_path / "cell.json"
    with TruthServer("token:600", **QUICK) as server:
        monkeypatch.setenv("BENCH_KEY", server.token())
        status = bench(
            *("--base-url", server.url, "--concurrency", 2, "--prompts", prompts(tmp_path), "--out", out),
            *("--num-prompts", 8, "--max-tokens", 5, "--rounds", 2, "--model", "m", "--variant", "eagle3"),
            *("--api-key-env", "BENCH_KEY", "--ignore-eos", "--request-timeout", 30),
        )
        journal = server.journal("reasons why")
    assert status == 0
    result = read(out)
    assert result.variant == "eagle3"
    assert result.counts.completed == 8
    assert [r.round for r in result.requests] == [0] * 4 + [1] * 4
    assert {r.output_tokens for r in result.requests} == {5}
    assert {(e["body"]["model"], e["body"]["max_tokens"], e["body"]["ignore_eos"]) for e in journal} == {("m", 5, True)}
    assert result.settings is not None
    assert result.settings.shape


def test_a_url_without_v1_is_tried_with_it_and_that_is_said(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    out = tmp_path / "cell.json"
    with TruthServer("v1-only", **QUICK) as server:
        assert bench("--base-url", server.root, "--concurrency", 2, "--prompts", prompts(tmp_path), "--out", out) == 0
        assert f"{server.root}/v1 has: that is measured" in capsys.readouterr().err
    assert read(out).counts.failed == 0


def test_fewer_prompts_than_rounds_need_make_fewer_rounds(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    out = tmp_path / "cell.json"
    with TruthServer(**QUICK) as server:
        assert bench("--base-url", server.url, "--concurrency", 4, "--prompts", prompts(tmp_path, 9), "--out", out) == 0
    result = read(out)
    assert result.settings is not None
    assert result.settings.rounds == 2
    assert result.metrics is not None
    assert result.metrics.output_tokens_per_s is not None
    assert "9 prompts are enough for 2 rounds" in capsys.readouterr().err


def test_one_prompt_is_enough_for_one_round(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    out = tmp_path / "cell.json"
    with TruthServer(**QUICK) as server:
        assert bench("--base-url", server.url, "--concurrency", 1, "--prompts", prompts(tmp_path, 1), "--out", out) == 0
    assert "1 prompt is enough for 1 round at concurrency 1, not for 3." in capsys.readouterr().err


def test_no_success_is_status_4_with_the_servers_words_and_a_file(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    out = tmp_path / "cell.json"
    with TruthServer("503:1", **QUICK) as server:
        assert bench("--base-url", server.url, "--concurrency", 2, "--prompts", prompts(tmp_path), "--out", out) == 4
        assert server.url in (printed := capsys.readouterr()).err
    assert "no replica is ready" in printed.err
    assert "Traceback" not in printed.err
    result = read(out)
    assert result.metrics is None
    assert (result.counts.requested, result.counts.failed) == (20, 20)


def free_port() -> int:
    with socket.socket() as listener:
        listener.bind(("127.0.0.1", 0))
        return int(listener.getsockname()[1])


@pytest.mark.parametrize(
    ("base_url", "said"),
    [
        ("http://127.0.0.1:{port}/v1", "127.0.0.1 port {port}: Connection refused. "),
        ("http://localhost:{port}/v1", "localhost port {port}: Connection refused. "),
        ("http://no-such-host.invalid/v1", "no-such-host.invalid port 80: "),
        ("https://127.0.0.1:{plain}/v1", "If it does not, http:// is meant. "),
    ],
)
def test_a_server_that_can_not_be_reached_is_said_before_anything_is_loaded(
    base_url: str, said: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    out = tmp_path / "cell.json"
    with TruthServer(**QUICK) as server:
        ports = {"port": free_port(), "plain": server.root.rpartition(":")[2]}
        url = base_url.format(**ports)
        assert bench("--base-url", url, "--concurrency", 2, "--prompts", prompts(tmp_path), "--out", out) == 2
        assert server.journal() == []
    error = capsys.readouterr().err
    assert f"--base-url {url}: can't be reached: " in error
    assert said.format(**ports) in error
    assert "Start the server, or mend the URL." in error
    assert "vLLM" not in error and "Traceback" not in error
    assert not out.exists()


def test_a_url_is_refused_before_anything_is_loaded(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    given = ("--concurrency", 2, "--prompts", prompts(tmp_path), "--out", tmp_path / "cell.json")
    assert bench("--base-url", "ftp://x/v1", *given) == 2
    assert capsys.readouterr().err.startswith("eagle-bench: --base-url ftp://x/v1: not a URL that can be measured")


def test_a_server_whose_tokens_nobody_counts_is_refused_before_the_cell(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    out = tmp_path / "cell.json"
    with TruthServer("usage-never", **QUICK) as server:
        assert bench("--base-url", server.url, "--concurrency", 2, "--prompts", prompts(tmp_path), "--out", out) == 2
        assert server.journal("reasons why") == []
    error = capsys.readouterr().err
    assert "sends no usage with its streams" in error and "give `bench` its `--tokenizer`" in error
    assert not out.exists()


@pytest.mark.parametrize(
    ("change", "said"),
    [
        ({"--base-url": "ftp://x/v1"}, "ftp://x/v1"),
        ({"--base-url": "http://x/v1/chat/completions"}, "ends in /chat/completions: give the URL up to /v1"),
        ({"--base-url": "localhost:8000"}, "localhost:8000"),
        ({"--concurrency": 0}, "--concurrency"),
        ({"--prompts": "nowhere.jsonl"}, "nowhere.jsonl"),
        ({"--num-prompts": 21}, "20"),
        ({"--api-key-env": "NO_SUCH_VARIABLE"}, "NO_SUCH_VARIABLE"),
        ({"--tokenizer": "./no-such-folder"}, "no-such-folder"),
        ({"--max-tokens": 0}, "--max-tokens"),
        ({"--request-timeout": "nan"}, "--request-timeout"),
        ({"--request-timeout": "inf"}, "--request-timeout"),
        ({"--model": "\udc80x"}, "--model"),
        ({"--variant": "\udc80x"}, "--variant"),
        ({"--variant": ""}, "--variant"),
        ({"--variant": " "}, "--variant"),
        ({"--base-url": "http://[::1/v1"}, "--base-url"),
        ({"--base-url": "http://.../v1"}, "--base-url"),
        ({"--base-url": f"http://{'a' * 64}.invalid/v1"}, "1 to 63 characters"),
        ({"--base-url": "http://127.0.0.1:0/v1"}, "port 0 is not between 1 and 65535"),
        ({"--base-url": "http://127.0.0.1:99999/v1"}, "port 99999 is not between 1 and 65535"),
        ({"--base-url": "http://127.0.0.1:x/v1"}, "the port 'x' is not a number"),
        ({"--base-url": "http://127.0.0.1/v1/ x"}, "spaces, line breaks"),
        ({"--base-url": "http://127.0.0.1/v1\r\nX: y"}, "spaces, line breaks"),
        ({"--base-url": "http://127.0.0.1/v1?a=b"}, "a query"),
        ({"--base-url": "http://127.0.0.1/v1#frag"}, "a fragment"),
        ({"--concurrency": 21}, "20 prompts can't keep 21 requests in flight"),
        ({"--prompts": "/"}, "is a folder"),
        ({"--out": "/dev/full"}, "--out /dev/full: is not a file"),
        ({"--out": "/proc/nowhere/cell.json"}, "--out /proc/nowhere/cell.json: it can't be written"),
    ],
    ids=lambda value: next(iter(value)) if isinstance(value, dict) else "",
)
def test_bad_input_is_status_2_and_nothing_is_sent(
    change: dict[str, object], said: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    with TruthServer(**QUICK) as server:
        given: dict[str, object] = {"--base-url": server.url, "--concurrency": 2, "--prompts": prompts(tmp_path)}
        given |= {"--out": tmp_path / "cell.json"} | change
        assert bench(*(part for pair in given.items() for part in pair)) == 2
        assert server.journal() == []
    error = capsys.readouterr().err
    assert said in error
    assert "Traceback" not in error
    assert list(tmp_path.iterdir()) == [tmp_path / "p.jsonl"]


@pytest.mark.parametrize(
    "url",
    [
        "http://user:hunter2@h/v1",
        "http://user:hunter2@h/v1?x=1",
        "http://user:hunter2@h/v1#f",
        "http://user:hunter2@h/v1 x",
        "http://user:hunter2@[::1/v1",
        "http://user:hunter2/3@h/v1",
        "http://user:hunter2@h\u2100/v1",
        "ftp://user:hunter2@h/v1",
        "user:hunter2@h/v1",
        "http://h/v1?api_key=hunter2",
    ],
)
def test_a_password_in_a_url_is_refused_and_not_shown(
    url: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    given = ("--concurrency", 2, "--prompts", prompts(tmp_path), "--out", tmp_path / "cell.json")
    assert bench("--base-url", url, *given) == 2
    error = capsys.readouterr().err
    assert "--base-url" in error
    assert "hunter2" not in error


def test_the_file_of_prompts_is_not_written_over(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path = prompts(tmp_path)
    before = path.read_bytes()
    (tmp_path / "link").symlink_to(path)
    for out in (path, tmp_path / "link"):
        assert bench("--base-url", "http://x/v1", "--concurrency", 2, "--prompts", path, "--out", out) == 2
        assert "is the file of prompts" in capsys.readouterr().err
    assert path.read_bytes() == before


def test_prompts_that_were_measured_before_are_named(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    out = tmp_path / "cell.json"
    with TruthServer(**QUICK) as server:
        given = ("--base-url", server.url, "--concurrency", 2, "--prompts", prompts(tmp_path), "--out", out)
        assert bench(*given) == 0
        assert bench(*given) == 0
    assert any(warning.startswith("prompts_repeated: ") for warning in read(out).warnings)
    assert "the server may have answered from its prefix cache" in capsys.readouterr().out


def test_a_result_is_not_written_over_but_moved(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    out, folder = tmp_path / "cells" / "cell.json", tmp_path / "cells"
    with TruthServer(**QUICK) as server:
        given = ("--base-url", server.url, "--concurrency", 2, "--prompts", prompts(tmp_path), "--out", out)
        for variant in ("a", "b", "c"):
            assert bench(*given, "--variant", variant) == 0
            assert not any(warning.startswith("prompts_repeated") for warning in read(out).warnings)
    assert read(out).variant == "c"
    earlier = sorted((folder / "earlier").glob("*/cell.json"))
    assert {read(path).variant for path in earlier} == {"a", "b"}
    said = capsys.readouterr().err
    assert all(f"what stood there was moved to {path}\n" in said for path in earlier)
    assert [cell.variant for cell in read_cells([folder])] == ["c"]


def test_an_empty_file_is_nothing_to_keep(tmp_path: Path) -> None:
    out = tmp_path / "cell.json"
    out.touch()
    with TruthServer(**QUICK) as server:
        assert bench("--base-url", server.url, "--concurrency", 2, "--prompts", prompts(tmp_path), "--out", out) == 0
    assert not (tmp_path / "earlier").exists()


def test_a_result_whose_place_is_gone_is_kept_elsewhere(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    """The folder vanishes while the cell runs."""
    spare, folder = tmp_path / "spare", tmp_path / "folder"
    spare.mkdir()
    folder.mkdir()
    monkeypatch.setattr("tempfile.tempdir", str(spare))

    def gone(_: Progress) -> str:
        shutil.rmtree(folder, ignore_errors=True)
        return "gone"

    monkeypatch.setattr(Progress, "__str__", gone)
    with TruthServer(**QUICK) as server:
        given = ("--base-url", server.url, "--concurrency", 2, "--prompts", prompts(tmp_path))
        assert bench(*given, "--out", folder / "cell.json") == 1
    (kept,) = spare.iterdir()
    assert read(kept).counts.completed == 20
    assert str(kept) in capsys.readouterr().err


def test_a_result_that_can_be_kept_nowhere_leaves_no_piece_and_one_error(tmp_path: Path) -> None:
    """No file of the process may grow beyond 4 KB."""
    spare, out = tmp_path / "spare", tmp_path / "out" / "cell.json"
    spare.mkdir()
    with TruthServer(**QUICK) as server:
        code = "import resource; resource.setrlimit(resource.RLIMIT_FSIZE, (4096, 4096))\n"
        command = [sys.executable, "-B", "-c", f"{code}from eagle_bench.cli import main; main()", "bench"]
        command += ["--base-url", server.url, "--concurrency", "2", "--prompts", str(prompts(tmp_path))]
        ended = subprocess.run(
            [*command, "--out", str(out)],
            capture_output=True,
            text=True,
            env={**os.environ, "TMPDIR": str(spare)},
            timeout=120,
            check=False,
        )
    assert ended.returncode == 1
    assert f"--out {out}: it can't be written: File too large. Nor in {spare}: File too large." in ended.stderr
    assert "unexpected fault" not in ended.stderr
    assert [*spare.iterdir(), *out.parent.iterdir()] == []


def test_too_many_failures_are_said_on_standard_error(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    out = tmp_path / "cell.json"
    with TruthServer("500:3", **QUICK) as server:
        assert bench("--base-url", server.url, "--concurrency", 2, "--prompts", prompts(tmp_path), "--out", out) == 0
    assert "of the requests failed, 2.0% is allowed" in capsys.readouterr().err
    assert list(tmp_path.glob("*.partial")) == []


SIGNALS = pytest.mark.parametrize(
    ("number", "status"),
    [(signal.SIGTERM, 143), (signal.SIGINT, 130), (signal.SIGHUP, 129)],
    ids=["SIGTERM", "SIGINT", "SIGHUP"],
)


@SIGNALS
def test_a_signal_ends_it_and_what_was_measured_is_kept(number: signal.Signals, status: int, tmp_path: Path) -> None:
    out = tmp_path / "cell.json"
    with TruthServer(tokens=20, first_ms=100, token_ms=20) as server:
        command = [sys.executable, "-c", "from eagle_bench.cli import main; main()", "bench", "--base-url", server.url]
        command += ["--concurrency", "2", "--prompts", str(prompts(tmp_path, 200)), "--out", str(out)]
        process = subprocess.Popen(command, stderr=subprocess.PIPE, text=True)
        while len(server.journal("reasons why")) < 8 and process.poll() is None:
            time.sleep(0.2)
        process.send_signal(number)
        _, error = process.communicate(timeout=120)
    assert process.returncode == status
    assert "Traceback" not in error
    result = read(out)
    assert 0 < result.counts.completed < 200
    assert result.counts.failed == 0
    assert result.metrics is not None
    assert any(warning.startswith("interrupted") for warning in result.warnings)


@pytest.mark.parametrize(("number", "status"), [(signal.SIGTERM, 143), (signal.SIGINT, 130)], ids=["SIGTERM", "SIGINT"])
def test_a_signal_ends_the_wait_for_a_server_that_never_answers(
    number: signal.Signals, status: int, tmp_path: Path
) -> None:
    out = tmp_path / "cell.json"
    with TruthServer("hang:1", **QUICK) as server:
        command = [sys.executable, "-c", "from eagle_bench.cli import main; main()", "bench", "--base-url", server.url]
        command += ["--concurrency", "2", "--prompts", str(prompts(tmp_path)), "--out", str(out)]
        process = subprocess.Popen(command, stderr=subprocess.PIPE, text=True)
        while not server.journal() and process.poll() is None:
            time.sleep(0.2)
        process.send_signal(number)
        _, error = process.communicate(timeout=60)  # the probe alone would wait for 120 s
    assert process.returncode == status
    assert "Traceback" not in error
    result = read(out)
    assert result.counts.requested == 0
    assert result.failure is not None
    assert result.failure.kind == "interrupted"


@pytest.mark.parametrize(
    ("number", "status", "said"),
    [
        (signal.SIGTERM, 143, "eagle-bench: ended by SIGTERM before anything was measured.\n"),
        (signal.SIGHUP, 129, ""),  # nobody is there any more
    ],
    ids=["SIGTERM", "SIGHUP"],
)
def test_a_signal_before_anything_is_measured_ends_it_with_one_line(
    number: signal.Signals, status: int, said: str, tmp_path: Path
) -> None:
    """A server that takes connections and says nothing holds it where it asks for the model's name."""
    path, out = prompts(tmp_path, 50), tmp_path / "cell.json"
    with socket.create_server(("127.0.0.1", 0)) as listener:
        listener.settimeout(60)
        url = f"http://127.0.0.1:{listener.getsockname()[1]}/v1"
        command = [sys.executable, "-c", "from eagle_bench.cli import main; main()", "bench", "--base-url", url]
        command += ["--concurrency", "2", "--prompts", str(path), "--out", str(out)]
        process = subprocess.Popen(command, stderr=subprocess.PIPE, text=True)
        (looked, _), (asked, _) = listener.accept(), listener.accept()
        with looked, asked:
            process.send_signal(number)
            _, error = process.communicate(timeout=120)
    assert process.returncode == status
    assert error == said
    assert list(tmp_path.iterdir()) == [path]
