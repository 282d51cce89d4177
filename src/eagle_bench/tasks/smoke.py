"""One answer before the load: an endpoint that can't say a word is not worth a sweep."""

from __future__ import annotations

import time
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import httpx

from eagle_bench.adapters import vertex
from eagle_bench.adapters.vllm_client.target import Target
from eagle_bench.errors import ServiceError, because
from eagle_bench.progress import say
from eagle_bench.results import CellFailure
from eagle_bench.tasks.budget import budget_of
from eagle_bench.tasks.failures import failure_of, not_measured, read_failure, write_failure
from eagle_bench.tasks.targets import target_of
from eagle_bench.tasks.teardown import give_back
from eagle_bench.variants import NO_LEVEL, VariantSpec

QUESTION = "Name three rivers, each in one word."
TIMEOUT_S = 120.0
PATIENCE_S = 300.0  # a new endpoint may refuse its first requests
URL_PATIENCE_S = 20.0  # what runs already should answer
PAUSE_S = 5.0


def smoke(
    run_id: str, variant: dict[str, Any], concurrency: Sequence[int], endpoint: Any, prompts: Any, checked: Any
) -> list[int]:
    """Ask once, and give the levels to measure: `[NO_LEVEL]` where there is nothing to measure, or no answer came.

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
        answer = first_answer(target_of(spec, endpoint), patience_s)
    except Exception as error:  # the other variants are still to be measured
        failure = failure_of("smoke_test", error)
        say(spec.id, f"smoke test failed: {failure.message}")
        return failure
    checked.metadata["question"] = QUESTION
    checked.metadata["answer"] = answer[:500]
    say(spec.id, "answers")
    return None


def first_answer(target: Target, patience_s: float) -> str:
    """The answer's text; busy or starting servers (429, 502, 503, no connection) are asked again for a while.

    Raises:
        ServiceError: no answer, an empty one, or a refusal; with the server's words.
    """
    deadline = time.monotonic() + patience_s
    while True:
        try:
            return _ask(target)
        except ServiceError as error:
            if error.kind != "unavailable" or time.monotonic() > deadline:
                raise
        time.sleep(PAUSE_S)


def _ask(target: Target) -> str:
    headers = {"Authorization": f"Bearer {target.token()}"} if target.token else {}
    body = {
        "model": target.model,
        "messages": [{"role": "user", "content": QUESTION}],
        "max_tokens": 32,
        "temperature": 0,
    }
    try:
        response = httpx.post(target.chat_url, json=body, headers=headers, timeout=TIMEOUT_S)
    except httpx.TimeoutException:
        raise ServiceError(f"{target.base_url}: no answer within {TIMEOUT_S:.0f} s.", kind="timeout") from None
    except httpx.HTTPError as error:
        raise ServiceError(because(f"{target.base_url}: can't be reached", error), kind="unavailable") from None
    if response.status_code != httpx.codes.OK:
        busy = response.status_code in {429, 502, 503}
        raise ServiceError(
            f"{target.base_url}: answered {response.status_code}: {response.text[:500]}",
            kind="unavailable" if busy else "other",
        )
    try:
        text = response.json()["choices"][0]["message"]["content"]
    except (ValueError, KeyError, IndexError, TypeError):
        found = " ".join(response.text[:200].split())
        raise ServiceError(f"{target.base_url}: was asked for a plain chat answer and sent: {found}") from None
    if not isinstance(text, str) or not text.strip():
        raise ServiceError(f"{target.base_url}: answered without a word.")
    return text
