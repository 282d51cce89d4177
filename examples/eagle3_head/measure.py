"""Serve the target with and without a head and measure both in turn: TPOT, and the engine's own acceptance.

    python -m eagle3_head.measure --target MODEL_DIR --head HEAD_DIR --draft-tokens 2 --out figures.json

Both engines are up at once and take turns in the order A B B A, so that drift of the machine cancels. This is the trainer's own
check, with few prompts; the verdict with intervals is eagle-bench's.
"""

from __future__ import annotations

import argparse
import json
import os
import re
import signal
import socket
import statistics
import subprocess
import sys
import time
import urllib.request
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from .heldout import HELDOUT

READY_WITHIN_S = 600


class Engine:
    """A vLLM server on loopback, with or without a head."""

    def __init__(self, target: Path, speculative: dict[str, Any] | None, log: Path, options: list[str]) -> None:
        with socket.socket() as probe:
            probe.bind(("127.0.0.1", 0))
            self.port = probe.getsockname()[1]
        command = [sys.executable, "-m", "vllm.entrypoints.openai.api_server", "--model", str(target)]
        command += ["--served-model-name", "target", "--host", "127.0.0.1", "--port", str(self.port)]
        command += ["--max-model-len", "2048", "--no-enable-prefix-caching", *options]
        if speculative:
            command += ["--speculative-config", json.dumps(speculative)]
        self.process = subprocess.Popen(command, stdout=log.open("w"), stderr=subprocess.STDOUT, start_new_session=True)

    def wait_until_ready(self) -> None:
        """Return once /health answers; RuntimeError if the engine ends or READY_WITHIN_S pass."""
        deadline = time.monotonic() + READY_WITHIN_S
        while time.monotonic() < deadline and self.process.poll() is None:
            try:
                self.get("/health")
            except OSError:
                time.sleep(2)
            else:
                return
        raise RuntimeError("the engine did not get ready: see its log")

    def get(self, path: str) -> str:
        with urllib.request.urlopen(f"http://127.0.0.1:{self.port}{path}", timeout=10) as answer:
            text: str = answer.read().decode()
        return text

    def answer(self, prompt: str, max_tokens: int) -> float | None:
        """TPOT in ms of one streamed answer at temperature 0; None below 2 tokens."""
        body = {
            "model": "target",
            "messages": [{"role": "user", "content": prompt}],
            "temperature": 0,
            "max_tokens": max_tokens,
            "stream": True,
            "stream_options": {"include_usage": True},
        }
        request = urllib.request.Request(
            f"http://127.0.0.1:{self.port}/v1/chat/completions",
            json.dumps(body).encode(),
            {"Content-Type": "application/json"},
        )
        first = last = None
        tokens = 0
        with urllib.request.urlopen(request, timeout=600) as stream:  # noqa: S310
            for line in stream:
                if not line.startswith(b"data: {"):
                    continue
                chunk = json.loads(line[6:])
                if chunk["choices"] and chunk["choices"][0]["delta"].get("content"):
                    last = time.perf_counter()
                    first = first or last
                if chunk.get("usage"):
                    tokens = chunk["usage"]["completion_tokens"]
        return (last - first) / (tokens - 1) * 1000 if first and last and tokens > 1 else None

    def counts(self) -> dict[str, float]:
        """The engine's counters of drafts and accepted tokens, by name and position."""
        found: dict[str, float] = {}
        for name, labels, value in re.findall(
            r"^vllm:spec_decode_(\w+)_total\{(.*)\} (\S+)$", self.get("/metrics"), re.M
        ):
            position = re.search(r'position="(\d+)"', labels)
            found[name + (f":{position[1]}" if position else "")] = float(value)
        return found

    def stop(self) -> None:
        os.killpg(self.process.pid, signal.SIGTERM)
        self.process.wait(timeout=60)


@dataclass(frozen=True)
class Round:
    """What one pass over prompts gave: TPOT of each answer, and how the counters moved."""

    tpot_ms: list[float]
    moved: dict[str, float]


def measure(engine: Engine, prompts: list[str], concurrency: int, max_tokens: int) -> Round:
    """One pass over `prompts`, `concurrency` at a time."""
    before = engine.counts()
    with ThreadPoolExecutor(concurrency) as pool:
        times = list(pool.map(lambda prompt: engine.answer(prompt, max_tokens), prompts))
    after = engine.counts()
    return Round([t for t in times if t is not None], {k: v - before.get(k, 0.0) for k, v in after.items()})


def acceptance(rounds: list[Round]) -> dict[str, Any] | None:
    """Acceptance length and per-position rates over rounds; None where nothing was drafted."""
    drafts = sum(r.moved.get("num_drafts", 0.0) for r in rounds)
    if not drafts:
        return None
    positions = sorted({k for r in rounds for k in r.moved if ":" in k})
    rates = [sum(r.moved.get(p, 0.0) for r in rounds) / drafts for p in positions]
    return {
        "length": round(1 + sum(rates), 3),
        "by_position": [round(rate, 3) for rate in rates],
        "drafts": int(drafts),
    }


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--target", type=Path, required=True)
    parser.add_argument("--head", type=Path, required=True)
    parser.add_argument("--draft-tokens", type=int, nargs="+", default=[2])
    parser.add_argument("--concurrency", type=int, nargs="+", default=[1, 4])
    parser.add_argument("--prompts-a-kind", type=int, default=4)
    parser.add_argument("--max-tokens", type=int, default=96)
    parser.add_argument("--pairs", type=int, default=2, help="times A B, every other one turned round")
    parser.add_argument("--out", type=Path, required=True)
    parser.add_argument("options", nargs="*", help="further options of both engines, after --")
    args = parser.parse_args()
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(143))  # so that `finally` stops the engines
    prompts = {kind: list(prompts[: args.prompts_a_kind]) for kind, prompts in HELDOUT.items()}
    args.out.parent.mkdir(parents=True, exist_ok=True)
    results: list[dict[str, Any]] = []
    baseline = Engine(args.target, None, args.out.with_suffix(".baseline.log"), args.options)
    try:
        baseline.wait_until_ready()
        for draft_tokens in args.draft_tokens:
            speculative = {"method": "eagle3", "model": str(args.head), "num_speculative_tokens": draft_tokens}
            drafted = Engine(args.target, speculative, args.out.with_suffix(f".k{draft_tokens}.log"), args.options)
            try:
                drafted.wait_until_ready()
                results += compare(baseline, drafted, prompts, args, draft_tokens)
            finally:
                drafted.stop()
            args.out.write_text(json.dumps(results, indent=1) + "\n")
    finally:
        baseline.stop()


def compare(
    baseline: Engine, drafted: Engine, prompts: dict[str, list[str]], args: argparse.Namespace, draft_tokens: int
) -> list[dict[str, Any]]:
    """Both engines in turn at each concurrency; a row a concurrency."""
    warm_up = ["Say hello.", "Count to ten."]
    for engine in (baseline, drafted):
        measure(engine, warm_up, 1, 16)
    rows = []
    for concurrency in args.concurrency:
        by_kind: dict[str, list[Round]] = {kind: [] for kind in prompts}
        times: dict[bool, list[float]] = {False: [], True: []}
        for kind, some in prompts.items():
            for pair in range(args.pairs):
                for with_head in (False, True) if pair % 2 == 0 else (True, False):
                    done = measure(drafted if with_head else baseline, some, concurrency, args.max_tokens)
                    times[with_head] += done.tpot_ms
                    if with_head:
                        by_kind[kind].append(done)
        medians = {with_head: statistics.median(values) for with_head, values in times.items()}
        row = {
            "draft_tokens": draft_tokens,
            "concurrency": concurrency,
            "tpot_ms": {"baseline": round(medians[False], 2), "eagle3": round(medians[True], 2)},
            "speedup": round(medians[False] / medians[True], 3),
            "acceptance": acceptance([r for rounds in by_kind.values() for r in rounds]),
            "acceptance_by_kind": {kind: acceptance(rounds) for kind, rounds in by_kind.items()},
        }
        print(json.dumps(row), flush=True)
        rows.append(row)
    return rows


if __name__ == "__main__":
    main()
