"""Files as `vllm bench serve --save-result [--save-detailed]` wrote them, old and new. Shares no code with the product."""

from __future__ import annotations

import random
import statistics
from typing import Any


def result(
    tpot_ms: float, *, concurrency: int | None, prompts: int = 100, detailed: bool = True, version: str = "0.33",
    failing: int = 0, label: str | None = None, seed: int = 0, streams: int | None = None,
) -> dict[str, Any]:  # fmt: skip
    """One result; `version` "0.8" has the keys of early 2025, "0.33" those of 2026; `streams` ran, whatever the file says."""
    shared, own = random.Random(seed), random.Random(tpot_ms)
    rows = []
    for index in range(prompts):
        inputs, outputs, hard = shared.randrange(20, 400), shared.randrange(30, 300), shared.uniform(0.8, 1.25)
        gap = tpot_ms * hard * own.uniform(0.95, 1.05) / 1000
        failed = index < failing
        rows.append({
            "input": inputs, "output": 0 if failed else outputs, "ttft": 0.0 if failed else own.uniform(0.05, 0.07),
            "itl": [] if failed else [gap] * (outputs - 1), "text": "" if failed else f"answer {index}",
            "error": "Service Unavailable" if failed else "",
        })  # fmt: skip
    done = [row for row in rows if not row["error"]]
    latency = [row["ttft"] + sum(row["itl"]) for row in rows]
    free = [0.0] * (streams or concurrency or 1)
    starts = []
    for value in latency:
        slot = free.index(min(free))
        starts.append(free[slot])
        free[slot] += value or 0.1
    duration = max(free)
    tokens = sum(row["output"] for row in done)
    out: dict[str, Any] = {
        "date": "20260101-000000", "backend": "openai-chat", "model_id": "llama", "tokenizer_id": "llama",
        "num_prompts": prompts, "request_rate": "inf", "burstiness": 1.0, "max_concurrency": concurrency,
        "duration": duration, "completed": len(done), "total_input_tokens": sum(r["input"] for r in done),
        "total_output_tokens": tokens, "request_throughput": len(done) / duration, "output_throughput": tokens / duration,
        "total_token_throughput": tokens / duration,
    }  # fmt: skip
    if version == "0.8":
        out["request_goodput:"] = None
    else:
        out |= {"endpoint_type": "openai-chat", "label": label, "failed": failing, "request_goodput": None}
        out |= {"latencies": latency, "queue_times": [0.0] * prompts, "max_output_tokens_per_s": 99.0}
    tpots = [1000 * statistics.fmean(r["itl"]) for r in done]
    for name, values in (("ttft", [1000 * r["ttft"] for r in done]), ("tpot", tpots), ("itl", tpots)):
        out[f"mean_{name}_ms"] = statistics.fmean(values) if values else 0.0
        out[f"median_{name}_ms"] = statistics.median(values) if values else 0.0
        out[f"p99_{name}_ms"] = max(values, default=0.0)
    if detailed:
        out |= {
            "input_lens": [r["input"] for r in rows], "output_lens": [r["output"] for r in rows],
            "ttfts": [r["ttft"] for r in rows], "itls": [r["itl"] for r in rows],
            "generated_texts": [r["text"] for r in rows], "errors": [r["error"] for r in rows],
        }  # fmt: skip
        if version != "0.8":
            out["start_times"] = [1000.0 + start for start in starts]
    if version != "0.8" and tpot_ms < 10:
        out |= {
            "spec_decode_acceptance_rate": 48.0, "spec_decode_acceptance_length": 2.4, "spec_decode_num_drafts": 900,
            "spec_decode_draft_tokens": 2700, "spec_decode_accepted_tokens": 1260,
            "spec_decode_per_position_acceptance_rates": [0.7, 0.45, 0.25],
        }  # fmt: skip
    return out
