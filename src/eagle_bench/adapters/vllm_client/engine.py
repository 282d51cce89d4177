"""vLLM's own benchmark, the one release this package was written against, with a backend of ours in it."""

from __future__ import annotations

import logging
import math
import os
import warnings
from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass
from importlib import metadata
from typing import Any

from eagle_bench.adapters.vllm_client import lean_import
from eagle_bench.adapters.vllm_client.lean_import import SampleRequest
from eagle_bench.errors import InputError
from eagle_bench.results import CellMetrics, Counts

VLLM_VERSION = "0.33.0"
BACKEND = "eagle-bench"

RequestFunction = Callable[..., Awaitable[Any]]


@dataclass(frozen=True)
class Sample:
    """One request as vLLM's benchmark gets it; it comes back to the request function by its index."""

    messages: list[dict[str, str]]
    prompt_tokens: int
    max_tokens: int


@dataclass(frozen=True)
class EngineResult:
    """The fields of vLLM's result that are used, in the order of the requests; times in seconds.

    The medians are vLLM's own; a test holds them against ours.
    """

    start_times: list[float]
    ttfts: list[float]
    latencies: list[float]
    output_lens: list[int]
    completed: int
    failed: int
    median_ttft_ms: float
    median_tpot_ms: float
    median_e2el_ms: float

    def agrees(self, count: Counts, ours: CellMetrics | None) -> bool:
        """Whether vLLM counted and timed the same as our records say."""
        if self.completed != count.completed:
            return False
        pairs = [(self.median_ttft_ms, ours.ttft_ms), (self.median_e2el_ms, ours.e2e_ms)] if ours else []
        return all(mine is None or math.isclose(theirs, mine.p50, rel_tol=1e-6) for theirs, mine in pairs)


class _Counted:
    """Stands where vLLM wants a tokenizer: every request comes with its count, so it is never asked.

    Without one vLLM leaves TTFT and TPOT out of its result.
    """

    def __call__(self, *_: object, **__: object) -> Any:
        raise AssertionError("a completed request came without its token count")


def check_version() -> str:
    """The version of vLLM in this environment.

    Raises:
        InputError: it is missing, or not the one whose benchmark this package was tested with.
    """
    need = f"pip install 'eagle-bench[client]' installs vLLM {VLLM_VERSION}."
    try:
        found = metadata.version("vllm")
    except metadata.PackageNotFoundError:
        raise InputError("vLLM is not installed: its benchmark does the measuring.", hint=need) from None
    if found.split("+", maxsplit=1)[0] != VLLM_VERSION:
        raise InputError(
            f"vLLM {found} is installed, but this release measures with the benchmark of vLLM {VLLM_VERSION}; "
            "another one may count differently.",
            hint=need,
        )
    return found


def load() -> None:
    """Import vLLM's benchmark: some seconds, so do it before any clock runs."""
    check_version()
    os.environ.setdefault("VLLM_LOGGING_LEVEL", "ERROR")
    logging.getLogger("vllm").setLevel(logging.ERROR)  # it misses its kernels, which a client does not need
    os.environ.setdefault("VLLM_NO_USAGE_STATS", "1")
    # Its report goes to standard output, which is the caller's.
    lean_import.serve().print = lambda *_, **__: None


async def run(request: RequestFunction, samples: Sequence[Sample], *, url: str, concurrency: int) -> EngineResult:
    """Run vLLM's benchmark over the samples; `request` sends each one.

    Args:
        request: vLLM's request function: `(request_func_input, session, pbar)` gives a RequestFuncOutput.
            The index of the sample is `int(request_func_input.request_id)`.
    """
    serve = lean_import.serve()
    from vllm.benchmarks.lib import endpoint_request_func as backends

    sessions: set[Any] = set()

    async def noted(request_func_input: Any, session: Any, pbar: Any = None) -> Any:
        sessions.add(session)
        return await request(request_func_input, session, pbar)

    backends.ASYNC_REQUEST_FUNCS[BACKEND] = noted
    if BACKEND not in backends.OPENAI_COMPATIBLE_BACKENDS:
        backends.OPENAI_COMPATIBLE_BACKENDS.append(BACKEND)
    try:
        with warnings.catch_warnings():
            warnings.filterwarnings("ignore", message="All requests failed")  # told in our own words
            result = await serve.benchmark(
                task_type=serve.TaskType.GENERATION,
                endpoint_type=BACKEND,
                api_url=url,
                base_url="",  # vLLM would scrape {base_url}/metrics without a token; ours goes with one
                model_id="",
                model_name="",
                tokenizer=_Counted(),
                input_requests=[
                    SampleRequest(
                        prompt="",
                        prompt_len=sample.prompt_tokens,
                        expected_output_len=sample.max_tokens,
                        request_id=str(index),
                        chat_messages=sample.messages,
                    )
                    for index, sample in enumerate(samples)
                ],
                logprobs=None,
                request_rate=float("inf"),
                burstiness=1.0,
                disable_tqdm=True,
                num_warmups=0,
                profile=False,
                selected_percentile_metrics=["ttft", "tpot", "e2el"],
                selected_percentiles=[99.0],
                ignore_eos=False,
                goodput_config_dict={},
                max_concurrency=concurrency,
                lora_modules=None,
                extra_headers=None,
                extra_body=None,
                ready_check_timeout_sec=0,
            )
    except BaseException:
        for session in sessions:  # vLLM closes its own at an orderly end only
            await session.close()
        raise
    return EngineResult(**{name: result[name] for name in EngineResult.__dataclass_fields__})
