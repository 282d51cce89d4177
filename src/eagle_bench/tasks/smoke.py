"""One answer before the load: an endpoint that can't say a word is not worth a sweep."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable, Sequence
from http.client import OK, UNAUTHORIZED
from pathlib import Path
from typing import Any

from eagle_bench.adapters import vertex
from eagle_bench.adapters.vllm_client.probe import PROBE_TIMEOUT_S, QUESTION, TOKENS, Probed, probe
from eagle_bench.adapters.vllm_client.target import Target
from eagle_bench.adapters.vllm_client.tokens import TokenKeeper
from eagle_bench.errors import ServiceError, because
from eagle_bench.progress import say
from eagle_bench.results import CellFailure, CellSettings, RequestError
from eagle_bench.tasks.budget import budget_of
from eagle_bench.tasks.failures import failure_of, not_measured, read_failure, write_failure
from eagle_bench.tasks.targets import target_of
from eagle_bench.tasks.teardown import give_back
from eagle_bench.variants import NO_LEVEL, VariantSpec
from eagle_bench.workload.prompts import TOKENIZER

PATIENCE_S = 300.0  # a new endpoint may refuse its first requests
URL_PATIENCE_S = 20.0  # what runs already should answer
PAUSE_S = 5.0
BUSY = frozenset({429, 502, 503})
UNREACHED = frozenset({"connection", "dropped-stream"})
KEPT = 500  # characters of what a server says


def smoke(
    run_id: str, variant: dict[str, Any], concurrency: Sequence[int], endpoint: Any, prompts: Any, checked: Any
) -> list[int]:
    """Ask as a cell will, and give the levels to measure: `[NO_LEVEL]` where there is nothing to measure, or no answer came.

    `checked` holds the answer; or the failure, also as the result of each cell that is not measured for it. The
    machines of a variant that does not answer go back at once.
    """
    spec = VariantSpec.model_validate(variant)
    levels = spec.levels_of(concurrency)
    Path(checked.path).touch()
    if not levels:
        say(spec.id, "nothing left to measure")
        return [NO_LEVEL]
    failure = read_failure(endpoint) or _asked(spec, endpoint, prompts, checked)
    if failure is None:
        return list(levels)
    write_failure(checked, failure)
    lines = [not_measured(run_id, spec.id, level, None, failure).model_dump_json() for level in levels]
    Path(checked.path).write_text("".join(f"{line}\n" for line in lines), encoding="utf-8")
    if resource := endpoint.metadata.get("resourceName"):
        give_back(vertex.Place.of(resource), run_id, spec)
    return [NO_LEVEL]


def _asked(spec: VariantSpec, endpoint: Any, prompts: Any, checked: Any) -> CellFailure | None:
    """Why there is no answer; None where there is one."""
    patience_s, budget = PATIENCE_S if spec.url is None else URL_PATIENCE_S, budget_of(prompts)
    if budget is not None:
        if budget.spent:
            failure = budget.failure("smoke_test", "not begun")
            say(spec.id, failure.message)
            return failure
        patience_s = min(patience_s, budget.left_s)
    try:
        found = first_answer(target_of(spec, endpoint), patience_s, lambda text: say(spec.id, text))
        found.require_counting(tokenizer=(Path(prompts.path) / TOKENIZER).is_dir())
    except Exception as error:  # the other variants are still to be measured
        failure = failure_of("smoke_test", error)
        say(spec.id, f"smoke test failed: {failure.message}")
        return failure
    checked.metadata["question"] = QUESTION
    checked.metadata["answer"] = found.text[:KEPT]
    say(spec.id, "answers")
    return None


def first_answer(target: Target, patience_s: float, note: Callable[[str], None] = lambda _: None) -> Probed:
    """What the client finds as a cell begins: the endpoint is asked in the same way, for a stream.

    Busy or starting servers (429, 502, 503, no connection) are asked again for a while.

    Args:
        note: gets what a person should know of how the endpoint wants to be asked.

    Raises:
        ServiceError: no answer, an empty one, or a refusal; with the server's words.
    """
    settings = CellSettings(
        max_output_tokens=TOKENS, requests=1, rounds=1, warmup_requests=0, request_timeout_s=PROBE_TIMEOUT_S
    )
    deadline = time.monotonic() + patience_s
    while True:
        found = asyncio.run(probe(target, settings, TokenKeeper(target.token), note))
        if found.error is None:
            return found
        refused = _refusal(target, found.error)
        if refused.kind != "unavailable" or time.monotonic() > deadline:
            raise refused
        time.sleep(PAUSE_S)


def _refusal(target: Target, error: RequestError) -> ServiceError:
    """Why there is no answer; its kind is "unavailable" where there may be one later."""
    said = error.body[:KEPT]
    if error.status is None and error.kind in UNREACHED:
        return ServiceError(because(f"{target.base_url}: can't be reached", said), kind="unavailable")
    if error.status in BUSY:
        return ServiceError(because(f"{target.base_url}: answered {error.status}", said), kind="unavailable")
    kind = "timeout" if error.kind == "timeout" else "other"
    answered = f" answered {error.status}:" if error.status not in {None, OK} else ""
    keyless = error.status == UNAUTHORIZED and target.token is None
    hint = "Name the secret that holds its key: set the variant's `api_key_secret`." if keyless else None
    return ServiceError(because(f"{target.base_url}:{answered}".rstrip(":"), said), kind=kind, hint=hint)
