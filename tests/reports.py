"""The comparisons that the report is tested with: made by simulation, kept as files beside their golden pages."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from eagle_bench.analysis import compare
from eagle_bench.comparison import Comparison, Plan
from eagle_bench.results import CellResult
from simulated_cells import BASELINE, EAGLE, NGRAM, Engine, cell

HOSTILE = "</script><img src=x onerror=alert(1)> \"'&amp; $x^2$ {{ 7*7 }} <b>*bold*</b> |"
LEVELS = (1, 2, 4, 6, 8, 10)


def _comparison(given: list[dict[str, Any]], **plan: Any) -> Comparison:
    variants = tuple(dict.fromkeys(one["variant"] for one in given))
    levels = tuple(sorted({one["concurrency"] for one in given}))
    settled = Plan(**{"baseline": variants[0], "variants": variants, "levels": levels, **plan})
    return compare(settled, [CellResult.model_validate(one) for one in given], resamples=1000)


def one_level() -> Comparison:
    return _comparison([cell("baseline", 4, BASELINE), cell("eagle3", 4, EAGLE)])


def six_levels_three_variants() -> Comparison:
    given = [
        cell(v, c, e, prompts=300)
        for v, e in (("baseline", BASELINE), ("eagle3", EAGLE), ("ngram", NGRAM))
        for c in LEVELS
    ]
    machine = {"machine_type": "a3-highgpu-8g", "accelerator": "8 × NVIDIA_H100_80GB", "model": "llama-4-scout"}
    return _comparison(
        given,
        labels={"eagle3": "EAGLE-3, 3 steps", "ngram": "n-gram, 5 tokens"},
        price_per_hour=88.0,
        slo_ttft_ms=250.0,
        slo_tpot_ms=20.0,
        settings={
            "baseline": machine | {"args": "--tp=8"},
            "eagle3": machine | {"args": "--tp=8 --speculative-algo=EAGLE3 --speculative-num-steps=3"},
            "ngram": machine | {"args": "--tp=8 --speculative-algo=NGRAM"},
        },
        run={"Run": "simulated", "Template": "sha256:0f1e2d3c", "Machines": "one for each variant, at the same time"},
    )


def variant_failed() -> Comparison:
    dead = Engine(failing=1.0, error=("server-error", 503, "no capacity: the replica is restarting"))
    return _comparison([cell(v, c, e) for v, e in (("baseline", BASELINE), ("eagle3", dead)) for c in (1, 4)])


def no_details() -> Comparison:
    return _comparison(
        [cell(v, c, e, details=False) for v, e in (("baseline", BASELINE), ("eagle3", EAGLE)) for c in (1, 4)]
    )


def hostile() -> Comparison:
    broken = Engine(failing=0.3, error=("server-error", 500, HOSTILE))
    given = [cell("baseline", 1, BASELINE), cell(f"eagle {HOSTILE}", 1, broken), cell("plain", 1, EAGLE)]
    for one in given:
        one["environment"] = {HOSTILE: HOSTILE}
        one["warnings"] = [HOSTILE]
        one["settings"]["shape"] = HOSTILE
        for request in one["requests"]:
            request["prompt_id"] += HOSTILE
            request["text"] = HOSTILE if request["error"] is None else None
    return _comparison(
        given,
        labels={"plain": HOSTILE},
        settings={"baseline": {HOSTILE: HOSTILE}, "plain": {HOSTILE: HOSTILE + "x"}},
        run={HOSTILE: HOSTILE},
    )


CASES: dict[str, Callable[[], Comparison]] = {
    "one_level": one_level,
    "six_levels_three_variants": six_levels_three_variants,
    "variant_failed": variant_failed,
    "no_details": no_details,
    "hostile": hostile,
}
