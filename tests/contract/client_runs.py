"""One measurement against a truth server, for the tests of the client."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from eagle_bench.adapters.vllm_client import Progress, Target, measure
from eagle_bench.results import CellResult, CellSettings
from eagle_bench.workload.prompts import Message, Prompt, StagedPrompt
from truth_server.process import TruthServer

MARK = "[measured"


def staged(count: int, concurrency: int, rounds: int = 1) -> list[StagedPrompt]:
    return [
        StagedPrompt(
            id=f"p{i}",
            messages=(Message(role="system", content="Be brief."), Message(role="user", content=f"{MARK} {i}] why?")),
            concurrency=concurrency,
            round=i * rounds // count,
        )
        for i in range(count)
    ]


def warm(count: int) -> list[Prompt]:
    return [Prompt(id=f"w{i}", messages=(Message(role="user", content=f"[warm {i}]"),)) for i in range(count)]


def cell(
    server: TruthServer,
    *,
    concurrency: int = 4,
    count: int = 24,
    rounds: int = 1,
    tokenizer: Path | None = None,
    timeout_s: float = 60.0,
    progress: list[Progress] | None = None,
    base_url: str | None = None,
    settings: dict[str, Any] | None = None,
    processes: int | None = None,
    deadline_s: float | None = None,
    **target: Any,
) -> CellResult:
    return measure(
        Target(base_url or server.url, **target),
        warm(2 * concurrency),
        staged(count, concurrency, rounds),
        variant="v",
        concurrency=concurrency,
        settings=CellSettings(
            max_output_tokens=64,
            requests=count,
            rounds=rounds,
            warmup_requests=2 * concurrency,
            request_timeout_s=timeout_s,
            **(settings or {}),
        ),
        tokenizer=tokenizer,
        run_id="r",
        on_progress=progress.append if progress is not None else lambda _: None,
        processes=processes,
        deadline_s=deadline_s,
    )
