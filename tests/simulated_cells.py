"""Cells as a real run would leave them, made from a known truth. Shares no code with the product.

Each prompt has a difficulty that both variants feel, so that pairs are alike; each (variant, round) may
drift; a speculative variant's steps take longer and yield more tokens, less so the busier the server is.
"""

from __future__ import annotations

import hashlib
import heapq
import math
import random
import statistics
from dataclasses import dataclass
from typing import Any

WORDS = [
    "the",
    "of",
    "a",
    "model",
    "draft",
    "token",
    "server",
    "queue",
    "batch",
    "step",
    "answer",
    "verifies",
    "accepts",
    "quickly",
    "rarely",
    "and",
    "then",
]


@dataclass(frozen=True)
class Engine:
    """A server's truth: milliseconds a step at concurrency c = step_ms × (1 + slope × (c − 1)); tokens a step."""

    step_ms: float = 12.0
    slope: float = 0.03
    tokens_per_step: float = 1.0
    prefill_ms: float = 60.0
    noise: float = 0.10
    drift: float = 0.0
    failing: float = 0.0
    error: tuple[str, int | None, str] = ("server-error", 503, "overloaded")

    def tpot_ms(self, concurrency: int) -> float:
        return self.step_ms * (1 + self.slope * (concurrency - 1)) / self.tokens_per_step


BASELINE = Engine()
EAGLE = Engine(step_ms=17.5, slope=0.09, tokens_per_step=2.4, prefill_ms=70.0, noise=0.14)
NGRAM = Engine(step_ms=13.5, slope=0.07, tokens_per_step=1.45, noise=0.2)


def cell(
    variant: str,
    concurrency: int,
    engine: Engine = BASELINE,
    *,
    prompts: int = 120,
    rounds: int = 3,
    seed: int = 0,
    spread: float = 0.25,
    token_source: str = "usage",
    details: bool = True,
    text: bool = True,
    prompt_salt: str = "",
) -> dict[str, Any]:
    """One `cell.json` as plain values."""
    own = random.Random(f"{seed}/{variant}/{concurrency}")
    requests: list[dict[str, Any]] = []
    windows = []
    for number in range(rounds):
        drift = math.exp(own.gauss(0, engine.drift))
        mine = range(number, prompts, rounds)
        records, window = _round(
            own, engine, concurrency, number, drift, [f"c{concurrency}-p{i}{prompt_salt}" for i in mine], spread, text
        )
        requests += records
        windows.append(window)
    done = [r for r in requests if r["error"] is None]
    failed = len(requests) - len(done)
    ids = "".join(r["prompt_id"] for r in requests)
    return {
        "schema_version": 1,
        "run_id": "simulated",
        "variant": variant,
        "concurrency": concurrency,
        "started_at": "2026-01-01T00:00:00Z",
        "duration_s": sum(w["end_s"] - w["start_s"] for w in windows),
        "settings": {
            "max_output_tokens": 512, "requests": prompts, "rounds": rounds,
            "warmup_requests": 2 * concurrency, "request_timeout_s": 600.0,
        },
        "environment": {"machine_type": "a3-highgpu-8g", "client": "vllm 0.33.0"},
        "counts": {"requested": len(requests), "completed": len(done), "failed": failed, "empty": 0},
        "metrics": _metrics(done, windows) if done else None,
        "acceptance": _acceptance(engine, done) if engine.tokens_per_step > 1 and done else None,
        "token_source": token_source if done else None,
        "prompts": {"count": len(requests), "sha256": hashlib.sha256(ids.encode()).hexdigest()},
        "client": {"loop_lag_ms_p99": 1.8, "processes": 1},
        "rounds": windows if done else [],
        "requests": requests if details else [],
    }  # fmt: skip


def _round(
    own: random.Random,
    engine: Engine,
    concurrency: int,
    number: int,
    drift: float,
    ids: list[str],
    spread: float,
    text: bool,
) -> tuple[list[dict[str, Any]], dict[str, Any]]:
    """One round as a closed loop: `concurrency` clients, each sending its next prompt when it has its answer."""
    free = [0.0] * concurrency
    records = []
    for prompt_id in ids:
        start = heapq.heappop(free)
        shared = random.Random(prompt_id)
        hardness = math.exp(shared.gauss(0, spread))
        tokens = max(2, min(512, round(math.exp(shared.gauss(5.0, 0.6)))))
        prompt_tokens = round(math.exp(shared.gauss(5.0, 0.7)))
        kind = shared.choice(["chat", "code", "summary"])
        ttft = engine.prefill_ms * (1 + 0.25 * (concurrency - 1)) * math.exp(own.gauss(0, 0.2)) * drift
        tpot = engine.tpot_ms(concurrency) * hardness * math.exp(own.gauss(0, engine.noise)) * drift
        e2e = ttft + tpot * (tokens - 1)
        failed = own.random() < engine.failing
        end = start + (0.2 if failed else e2e / 1000)
        heapq.heappush(free, end)
        kind_of_error, status, body = engine.error
        answer = " ".join(shared.choice(WORDS) for _ in range(12))
        if own.random() < 0.1:
            answer = answer[: own.randrange(10, 40)] + " differently"
        records.append({
            "prompt_id": prompt_id, "kind": kind, "round": number, "start_s": start,
            "ttft_ms": None if failed else ttft, "e2e_ms": None if failed else e2e,
            "prompt_tokens": prompt_tokens, "output_tokens": None if failed else tokens,
            "chunks": 0 if failed else max(1, round(tokens / engine.tokens_per_step)),
            "inter_chunk_ms_p50": None if failed else tpot * engine.tokens_per_step,
            "text": answer if text and not failed else None,
            "error": {"kind": kind_of_error, "status": status, "body": body} if failed else None,
        })  # fmt: skip
    done = [r for r in records if r["error"] is None]
    busy = sum(r["e2e_ms"] for r in done) / 1000
    rate = concurrency / busy if busy else None
    return records, {
        "round": number, "start_s": 0.0, "end_s": max(free), "window_start_s": 0.0, "window_end_s": max(free),
        "output_tokens_per_s": rate and rate * sum(r["output_tokens"] for r in done),
        "requests_per_s": rate and rate * len(done),
    }  # fmt: skip


def _metrics(done: list[dict[str, Any]], windows: list[dict[str, Any]]) -> dict[str, Any]:
    tpot = [(r["e2e_ms"] - r["ttft_ms"]) / (r["output_tokens"] - 1) for r in done]
    known = [w for w in windows if w["output_tokens_per_s"]]
    return {
        "tpot_ms": _summary(tpot),
        "ttft_ms": _summary([r["ttft_ms"] for r in done]),
        "e2e_ms": _summary([r["e2e_ms"] for r in done]),
        "output_tokens_per_s": statistics.fmean(w["output_tokens_per_s"] for w in known),
        "requests_per_s": statistics.fmean(w["requests_per_s"] for w in known),
        "goodput": None,
        "mean_output_tokens": statistics.fmean(r["output_tokens"] for r in done),
    }


def _summary(values: list[float]) -> dict[str, Any]:
    ordered = sorted(values)
    at = lambda share: ordered[min(len(ordered) - 1, int(share * len(ordered)))]  # noqa: E731
    return {
        "p50": statistics.median(ordered),
        "p90": at(0.9),
        "p99": at(0.99) if len(ordered) >= 100 else None,
        "mean": statistics.fmean(ordered),
    }


def _acceptance(engine: Engine, done: list[dict[str, Any]]) -> dict[str, Any]:
    """Counters of an engine that drafts 3 tokens before every step; prefill made each answer's first token."""
    decoded = sum(r["output_tokens"] - 1 for r in done)
    steps = round(decoded / engine.tokens_per_step)
    accepted = decoded - steps
    weights = [0.75**i for i in range(3)]  # later positions are accepted less
    return {
        "length": 1 + accepted / steps,
        "source": "metrics",
        "drafted_tokens": 3 * steps,
        "accepted_tokens": accepted,
        "drafts": steps,
        "steps": steps,
        "by_position": [accepted / steps * weight / sum(weights) for weight in weights],
    }
