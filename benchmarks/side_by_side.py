"""Our client beside others against the truth server, and bare sockets as the floor.

    python benchmarks/side_by_side.py --install-peers --out docs/clients.md [--peers FOLDER] [--streams 1,8,64,256]

Every client gets the same server, the same number of requests and the same concurrency, one after
another in one session; what it reports is held against the server's own journal. `ours` and
`vllm` (`vllm bench serve`) run in this environment. guidellm and aiperf run from virtual environments of
their own under `--peers` (`FOLDER/guidellm`, `FOLDER/aiperf`), which `--install-peers` makes; one that is
not there is left out and named.
"""

from __future__ import annotations

import argparse
import json
import os
import platform
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from dataclasses import dataclass
from datetime import UTC, datetime
from importlib import metadata
from pathlib import Path
from typing import Any

import psutil

sys.path.insert(0, str(Path(__file__).parents[1] / "tests"))

from truth_server import floor, oracle
from truth_server.process import TruthServer

TOKENS, FIRST_MS, TOKEN_MS = 48, 80.0, 10.0
PEERS = {"guidellm": "guidellm==0.8.1", "aiperf": "aiperf==0.13.0"}
HOLDS = 0.05
BUSY = 0.2  # cores that something else uses
START, END = "<!-- side by side: begin -->", "<!-- side by side: end -->"


@dataclass(frozen=True)
class Reported:
    """Medians that a client reports, in milliseconds, and its output tokens per second."""

    ttft_ms: float
    tpot_ms: float
    e2e_ms: float
    tokens_per_s: float


@dataclass(frozen=True)
class Load:
    server: TruthServer
    prompts: Path  # JSONL with `prompt` and `output_tokens`
    tokenizer: Path
    requests: int
    streams: int
    k: int  # tokens a chunk
    folder: Path
    peers: Path


def bare(load: Load) -> Reported:
    texts = [json.loads(line)["prompt"] for line in load.prompts.read_text().splitlines()]
    found = floor.run(load.server.root, texts, load.streams)
    spent_s = max(r.start_s + r.e2e_ms / 1000 for r in found) - min(r.start_s for r in found)
    return Reported(
        statistics.median(r.ttft_ms for r in found),
        statistics.median((r.e2e_ms - r.ttft_ms) / (TOKENS - 1) for r in found),
        statistics.median(r.e2e_ms for r in found),
        TOKENS * len(found) / spent_s,
    )


def ours(load: Load) -> Reported:
    out = load.folder / "ours.json"
    command = [sys.executable, "-c", "from eagle_bench.cli import main; main()", "bench", "--base-url", load.server.url]
    command += ["--concurrency", str(load.streams), "--prompts", str(load.prompts), "--rounds", "1", "--out", str(out)]
    _run(command)
    metrics = json.loads(out.read_text())["metrics"]
    return Reported(
        metrics["ttft_ms"]["p50"], metrics["tpot_ms"]["p50"], metrics["e2e_ms"]["p50"], metrics["output_tokens_per_s"]
    )


def vllm(load: Load) -> Reported:
    code = (
        "from vllm.benchmarks import serve; from vllm.utils.argparse_utils import FlexibleArgumentParser as P;"
        "import sys; p = P(); serve.add_cli_args(p); serve.main(p.parse_args(sys.argv[1:]))"
    )
    command = [sys.executable, "-c", code, "--backend", "openai-chat", "--base-url", load.server.root, "--endpoint"]
    command += [
        "/v1/chat/completions",
        "--model",
        "truth",
        "--tokenizer",
        str(load.tokenizer),
        "--dataset-name",
        "custom",
    ]
    command += ["--dataset-path", str(load.prompts), "--num-prompts", str(load.requests), "--custom-output-len", "-1"]
    command += [
        "--max-concurrency",
        str(load.streams),
        "--skip-chat-template",
        "--disable-shuffle",
        "--percentile-metrics",
    ]
    command += ["ttft,tpot,e2el", "--save-result", "--result-dir", str(load.folder), "--result-filename", "vllm.json"]
    _run(command)
    found = json.loads((load.folder / "vllm.json").read_text())
    return Reported(
        found["median_ttft_ms"], found["median_tpot_ms"], found["median_e2el_ms"], found["output_throughput"]
    )


def guidellm(load: Load) -> Reported:
    out = load.folder / "guidellm.json"
    command = [str(load.peers / "guidellm/bin/guidellm"), "run", "--disable-console"]
    command += ["--backend", f"kind=openai_http,target={load.server.root},model=truth"]
    command += ["--profile", f"kind=concurrent,streams={load.streams}"]
    command += ["--constraint", f"kind=max_requests,count={load.requests}"]
    command += ["--tokenizer", f"kind=hf_auto,model={load.tokenizer}"]
    command += ["--data", f"kind=json_file,path={load.prompts}", "--output", f"kind=json,path={out}"]
    _run(command)
    found = json.loads(out.read_text())["benchmarks"][0]["metrics"]

    def median(name: str) -> float:
        return float(found[name]["successful"]["median"])

    # What it calls time_per_output_token includes TTFT; its inter-token latency is TPOT.
    return Reported(
        median("time_to_first_token_ms"),
        median("inter_token_latency_ms"),
        median("request_latency") * 1000,
        float(found["output_tokens_per_second"]["successful"]["mean"]),
    )


def aiperf(load: Load) -> Reported:
    folder = load.folder / f"aiperf-{load.streams}-{load.k}"
    rows = [{"text": json.loads(line)["prompt"]} for line in load.prompts.read_text().splitlines()]
    prompts = load.folder / "aiperf.jsonl"
    prompts.write_text("".join(json.dumps(one) + "\n" for one in rows))
    command = [str(load.peers / "aiperf/bin/aiperf"), "profile", "--model", "truth", "--url", load.server.root]
    command += ["--endpoint-type", "chat", "--streaming", "--tokenizer", str(load.tokenizer), "--ui", "none"]
    command += ["--input-file", str(prompts), "--custom-dataset-type", "single_turn"]
    command += ["--concurrency", str(load.streams), "--request-count", str(load.requests)]
    command += ["--artifact-dir", str(folder), "--use-server-token-count"]
    _run(command, offline=False)  # offline it refuses a tokenizer in a folder
    found = json.loads((folder / "profile_export_aiperf.json").read_text())
    return Reported(
        found["time_to_first_token"]["p50"],
        found["inter_token_latency"]["p50"],
        found["request_latency"]["p50"],
        found["output_token_throughput"]["avg"],
    )


CLIENTS: dict[str, Callable[[Load], Reported]] = {
    "floor": bare,
    "ours": ours,
    "vllm": vllm,
    "guidellm": guidellm,
    "aiperf": aiperf,
}


def _run(command: list[str], *, offline: bool = True) -> None:
    environment = os.environ | ({"HF_HUB_OFFLINE": "1", "TRANSFORMERS_OFFLINE": "1"} if offline else {})
    done = subprocess.run(command, env=environment, capture_output=True, text=True, timeout=300, check=False)
    if done.returncode:
        told = "".join(sign for sign in done.stderr or done.stdout if sign.isascii())  # without frames
        raise RuntimeError(f"ended with {done.returncode}: … {' '.join(told.split())[-300:]}")


def row(name: str, streams: int, k: int, folder: Path, peers: Path) -> dict[str, Any]:
    """One client on one load: what it reports, and what the server knows about the same requests."""
    requests = max(16, 3 * streams)
    before = _others_s(), time.monotonic()
    with TruthServer("role-first", tokens=TOKENS, tokens_per_chunk=k, first_ms=FIRST_MS, token_ms=TOKEN_MS) as server:
        prompts = folder / f"{name}-{streams}-{k}.jsonl"
        texts = [
            f"{i} question side by side {' '.join(f'w{(i + j) % 97}' for j in range(20))}" for i in range(requests)
        ]
        prompts.write_text("".join(json.dumps({"prompt": t, "output_tokens": TOKENS}) + "\n" for t in texts))
        load = Load(server, prompts, _tokenizer(folder), requests, streams, k, folder, peers)
        reported = CLIENTS[name](load)
        journal = oracle.good(server.journal())[-requests:]
    return {
        "client": name,
        "streams": streams,
        "tokens_per_chunk": k,
        "ttft_error_ms": reported.ttft_ms - oracle.median(oracle.ttft_ms, journal),
        "ttft_error": reported.ttft_ms / oracle.median(oracle.ttft_ms, journal) - 1,
        "e2e_error": reported.e2e_ms / oracle.median(oracle.e2e_ms, journal) - 1,
        "tpot_error": reported.tpot_ms / oracle.median(oracle.tpot_ms, journal) - 1,
        "e2e_error_ms": reported.e2e_ms - oracle.median(oracle.e2e_ms, journal),
        "throughput_error": reported.tokens_per_s / _rate(name, journal, streams) - 1,
        "others": max(0.0, (_others_s() - before[0]) / (time.monotonic() - before[1])),
    }


def _others_s() -> float:
    """CPU seconds of this machine that neither this process nor any child of it that has ended used."""
    all_of_it, ours_of_it = psutil.cpu_times(), os.times()
    # A guest's time stands in `user`, too.
    busy = sum(all_of_it) - all_of_it.idle - getattr(all_of_it, "iowait", 0.0) - getattr(all_of_it, "guest", 0.0)
    return busy - (ours_of_it.user + ours_of_it.system + ours_of_it.children_user + ours_of_it.children_system)


def _rate(name: str, journal: list[oracle.Entry], streams: int) -> float:
    """The true output tokens per second, as the client defines them.

    Ours: until fewer streams run than the level says; an answer that is under way counts as far as its time between the
    first and the last chunk has gone. Others: all requests, from the first to the last byte.
    """
    begin = min(entry["received_s"] for entry in journal)
    ends = sorted(oracle.contents_s(entry)[-1] for entry in journal)
    closes = ends[-streams] if name == "ours" else ends[-1]
    return sum(_sent_until(entry, closes) for entry in journal) / (closes - begin)


def _sent_until(entry: oracle.Entry, moment_s: float) -> float:
    chunks = [chunk for chunk in entry["sent"] if chunk["what"] == "content"]
    first, last = chunks[0], chunks[-1]
    if moment_s < first["at_s"]:
        return 0.0
    gone = min(1.0, (moment_s - first["at_s"]) / (last["at_s"] - first["at_s"]))
    return float(first["tokens"] + gone * sum(chunk["tokens"] for chunk in chunks[1:]))


def _tokenizer(folder: Path) -> Path:
    """A tokenizer of whole words, whose tokens are the server's."""
    place = folder / "tokenizer"
    place.mkdir(exist_ok=True)
    vocabulary = {"[UNK]": 0} | {f"w{i}": i + 1 for i in range(100)}
    model = {"type": "WordLevel", "vocab": vocabulary, "unk_token": "[UNK]"}
    settings = {"version": "1.0", "model": model, "pre_tokenizer": {"type": "WhitespaceSplit"}, "added_tokens": []}
    (place / "tokenizer.json").write_text(json.dumps(settings))
    (place / "tokenizer_config.json").write_text(
        json.dumps({"tokenizer_class": "PreTrainedTokenizerFast", "unk_token": "[UNK]"})
    )
    return place


def table(rows: list[dict[str, Any]]) -> str:
    """The errors of the medians against the truth, a client a line."""
    lines = ["| streams | tokens a chunk | client | TTFT, ms | TPOT | E2E, ms | throughput | other work |"]
    lines += ["| --: | --: | :-- | --: | --: | --: | --: | --: |"]
    for r in rows:
        lines.append(
            f"| {r['streams']} | {r['tokens_per_chunk']} | {r['client']} | {r['ttft_error_ms']:+.2f} "
            f"| {r['tpot_error']:+.2%} | {r['e2e_error_ms']:+.2f} | {r['throughput_error']:+.1%} | {r['others']:.2f} |"
        )
    return "\n".join(lines)


def holds(rows: list[dict[str, Any]]) -> str:
    """The highest number of streams up to which each client's TTFT, TPOT, E2E are all within 5 % of the truth."""
    lines = ["| client | holds up to |", "| :-- | --: |"]
    for name in dict.fromkeys(r["client"] for r in rows):
        held = 0
        for streams in sorted({r["streams"] for r in rows if r["client"] == name}):
            here = [r for r in rows if r["client"] == name and r["streams"] == streams]
            if not all(max(abs(r["ttft_error"]), abs(r["tpot_error"]), abs(r["e2e_error"])) <= HOLDS for r in here):
                break
            held = streams
        shown = "1 stream" if held == 1 else f"{held} streams"
        lines.append(f"| {name} | {shown if held else 'not even the lowest'} |")
    return "\n".join(lines)


def versions(peers: Path) -> str:
    """The clients by their versions."""
    found = {name: metadata.version(name) for name in ("eagle-bench", "vllm")}
    code = "import sys; from importlib.metadata import version; print(version(sys.argv[1]))"
    for name in PEERS:
        python = peers / name / "bin" / "python"
        if python.exists():
            done = subprocess.run([str(python), "-c", code, name], capture_output=True, text=True, check=True)
            found[name] = done.stdout.strip()
    return ", ".join(f"{name} {version}" for name, version in found.items())


def write(text: str, out: Path) -> None:
    """Put the text between the marks of a document, or make a document of it."""
    document = out.read_text() if out.exists() else f"{START}\n{END}\n"
    if START not in document or END not in document:
        sys.exit(f"{out} has no lines {START} and {END} for the table to stand between")
    before, _, rest = document.partition(START)
    out.write_text(f"{before}{START}\n{text}\n{END}{rest.partition(END)[2]}")


def install(peers: Path) -> None:
    for name, requirement in PEERS.items():
        if not (peers / name / "bin" / name).exists():
            subprocess.run([sys.executable, "-m", "venv", str(peers / name)], check=True)
            subprocess.run([str(peers / name / "bin/pip"), "install", "-q", requirement], check=True)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--streams", default="1,8,64,256")
    parser.add_argument("--tokens-per-chunk", default="1,3")
    parser.add_argument("--clients", default=",".join(CLIENTS))
    parser.add_argument("--peers", type=Path, default=Path.home() / ".cache" / "eagle-bench" / "peers")
    parser.add_argument("--install-peers", action="store_true")
    parser.add_argument("--out", type=Path)
    args = parser.parse_args()
    if args.install_peers:
        install(args.peers)
    rows: list[dict[str, Any]] = []
    left_out: list[str] = []
    names = [n for n in args.clients.split(",") if n not in PEERS or (args.peers / n / "bin" / n).exists()]
    left_out += [f"{n}: not installed" for n in args.clients.split(",") if n not in names]
    with tempfile.TemporaryDirectory() as folder:
        for streams in map(int, args.streams.split(",")):
            for k in map(int, args.tokens_per_chunk.split(",")):
                for name in names:
                    try:
                        rows.append(row(name, streams, k, Path(folder), args.peers))
                        print(rows[-1], file=sys.stderr, flush=True)
                    except (RuntimeError, subprocess.TimeoutExpired, OSError, LookupError, ValueError) as error:
                        left_out.append(f"{name} at {streams} streams, {k} tokens a chunk: {error}")
                        print(left_out[-1], file=sys.stderr, flush=True)
    others = [r["others"] for r in rows]
    busy = f"other work {min(others):.2f} to {max(others):.2f} cores" if others else "nothing measured"
    machine = f"{os.cpu_count()} cores, {platform.system()} on {platform.machine()}, Python {platform.python_version()}"
    text = f"Measured {datetime.now(UTC):%Y-%m-%d} on {machine}, {busy}: {versions(args.peers)}.\n"
    text += f"\n{table(rows)}\n\n{holds(rows)}\n"
    if others and max(others) > BUSY:
        text += f"\nThe machine was busy with other work (more than {BUSY} cores): on a quiet one all come closer.\n"
    if left_out:
        text += "\nLeft out:\n\n" + "\n".join(f"- {line}" for line in left_out) + "\n"
    print(text)
    if args.out:
        write(text, args.out)


if __name__ == "__main__":
    main()
