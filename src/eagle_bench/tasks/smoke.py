"""One answer before the load: an endpoint that can't say a word is not worth a sweep."""

from __future__ import annotations

import time
from typing import Any

import httpx

from eagle_bench.adapters.vllm_client.target import Target
from eagle_bench.errors import ServiceError
from eagle_bench.progress import say
from eagle_bench.tasks.failures import failure_of, read_failure, write_failure
from eagle_bench.tasks.targets import target_of
from eagle_bench.variants import VariantSpec

QUESTION = "Name three rivers, each in one word."
TIMEOUT_S = 120.0
PATIENCE_S = 300.0  # a new endpoint may refuse its first requests
URL_PATIENCE_S = 20.0  # what runs already should answer
PAUSE_S = 5.0


def smoke(variant: dict[str, Any], endpoint: Any, checked: Any) -> None:
    """Ask once, and write the answer or the failure into `checked`."""
    spec = VariantSpec.model_validate(variant)
    if failure := read_failure(endpoint):
        write_failure(checked, failure)
        return
    try:
        answer = first_answer(target_of(spec, endpoint), PATIENCE_S if spec.url is None else URL_PATIENCE_S)
    except Exception as error:  # the other variants are still to be measured
        failure = failure_of("smoke_test", error)
        write_failure(checked, failure)
        say(spec.id, f"smoke test failed: {failure.message}")
        return
    checked.metadata["question"] = QUESTION
    checked.metadata["answer"] = answer[:500]
    say(spec.id, "answers")


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
        raise ServiceError(f"{target.base_url}: can't be reached: {error}.", kind="unavailable") from None
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
