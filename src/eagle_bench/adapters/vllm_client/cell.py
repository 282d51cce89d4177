"""The course of one cell, from the probe to its `CellResult`."""

from __future__ import annotations

import asyncio
import os
import platform
import time
from collections.abc import Awaitable, Callable, Coroutine, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, TypeVar

from eagle_bench import __version__
from eagle_bench.acceptance import Page, decoded, from_chunks, from_pages, from_responses, read_page
from eagle_bench.adapters.vllm_client import engine
from eagle_bench.adapters.vllm_client.course import Course
from eagle_bench.adapters.vllm_client.doubts import doubts, token_source
from eagle_bench.adapters.vllm_client.endings import at_deadline, on_signals
from eagle_bench.adapters.vllm_client.failures import cell_failure
from eagle_bench.adapters.vllm_client.health import health
from eagle_bench.adapters.vllm_client.pages import fetch
from eagle_bench.adapters.vllm_client.payload import payload_sha256
from eagle_bench.adapters.vllm_client.probe import Probed, probe
from eagle_bench.adapters.vllm_client.rounds import Outcome, Tally
from eagle_bench.adapters.vllm_client.sender import WARM_UP, Part, Sender, Terms
from eagle_bench.adapters.vllm_client.target import Progress, Target
from eagle_bench.adapters.vllm_client.tokens import TokenKeeper, TokenUnavailable
from eagle_bench.codes import CellWarningCode
from eagle_bench.metrics import cell_metrics, counts, round_window
from eagle_bench.precision import enough
from eagle_bench.results import (
    Acceptance,
    Capabilities,
    CellResult,
    CellSettings,
    PromptsUsed,
    RequestRecord,
    RoundWindow,
    Saving,
)
from eagle_bench.workload.prompts import Prompt, StagedPrompt, sha256_of

_STOP_SHARE = 0.5  # of failures: above it a cell has no answer to give
_STOP_LEFT_S = 30.0  # and only where going on would cost something

Found = TypeVar("Found")


@dataclass
class Cell:
    """The course of one cell: probe, warm-up, rounds, and what came of them.

    Args:
        start: gives who sends the rounds, once the endpoint has been probed.
        tokenizer: a folder with `tokenizer.json`, for servers that send no usage.
        deadline_s: when to end early, in seconds since 1970.
        on_signal: hears the number of a signal that ends it early.
    """

    target: Target
    variant: str
    concurrency: int
    settings: CellSettings
    start: Callable[[Terms, TokenKeeper], Awaitable[Sender]]
    tokenizer: Path | None
    run_id: str | None
    on_progress: Callable[[Progress], None]
    deadline_s: float | None = None
    on_signal: Callable[[int], None] = lambda number: None

    def __post_init__(self) -> None:
        self._sender: Sender | None = None
        self._waiting: asyncio.Task[Any] | None = None
        self._course = Course(self.concurrency, self.settings.rounds, self._running, self.on_progress)
        self._saving: Saving | None = None
        self._warnings: dict[CellWarningCode, str] = {}  # code -> text

    async def run(self, warmup: Sequence[Prompt], measured: Sequence[StagedPrompt]) -> CellResult:
        started_at = datetime.now(UTC).isoformat(timespec="seconds")
        began_s = time.perf_counter()
        tokens = TokenKeeper(self.target.token)
        with on_signals(self._interrupt), at_deadline(self.deadline_s, self._out_of_time):
            probed = await self._unless_stopped(
                probe(self.target, self.settings, tokens, self._course.note),
                otherwise=Probed(self.target, Capabilities(usage_in_stream=False)),
            )
            self.target = probed.target
            if not self._stopped:
                probed.require_counting(tokenizer=self.tokenizer is not None)
            if probed.silent:
                self._warn("stopped_early", "no connection could be made; the others would have waited as long")
            settings = self.settings.model_copy(update={"payload_sha256": payload_sha256(self.settings)})
            sender = await self.start(Terms(self.target, settings, probed.capabilities, self.tokenizer), tokens)
            self._sender = sender
            await self._warm_up(warmup, sender)
            before = await self._unless_stopped(self._page(tokens), otherwise=None)
            outcomes, windows = await self._rounds(measured, sender)
            await sender.close()
            after = await self._page(tokens) if before is not None else None
        records = [outcome.record for outcome in outcomes]
        count = counts(records)
        metrics = cell_metrics(records, windows, slo_ttft_ms=settings.slo_ttft_ms, slo_tpot_ms=settings.slo_tpot_ms)
        client = health(sender.watches)
        for code, text in doubts(outcomes, settings, client, metrics, token_renewed=tokens.renewed):
            self._warn(code, text)
        return CellResult(
            run_id=self.run_id,
            variant=self.variant,
            concurrency=self.concurrency,
            started_at=started_at,
            duration_s=time.perf_counter() - began_s,
            settings=settings,
            environment=_environment(),
            capabilities=probed.capabilities.model_copy(update={"metrics": after is not None}),
            counts=count,
            metrics=metrics,
            acceptance=self._acceptance(outcomes, before, after),
            token_source=token_source(outcomes),
            prompts=PromptsUsed(count=len(measured), sha256=sha256_of(measured)),
            client=client,
            rounds=tuple(windows),
            saving=self._saving,
            warnings=tuple(f"{code}: {text}" for code, text in self._warnings.items()),
            failure=cell_failure(records, probed.error) if metrics is None else None,
            requests=tuple(records),
        )

    async def _page(self, tokens: TokenKeeper) -> Page | None:
        """The engine's metrics now; None where there are none to be had."""
        if self.target.metrics_url is None:
            return None
        try:
            text = await fetch(self.target.metrics_url, await tokens.current())
        except TokenUnavailable:
            return None
        return read_page(text) if text is not None else None

    def _acceptance(self, outcomes: Sequence[Outcome], before: Page | None, after: Page | None) -> Acceptance | None:
        records = [outcome.record for outcome in outcomes]
        speculation = [outcome.speculation for outcome in outcomes if outcome.speculation]
        if after is not None and after.missing:
            self._warn("metrics_names", f"the engine's metrics page has no {', '.join(after.missing)} any more")
        if odd := {name: None for page in (before, after) if page is not None for name in page.uncountable}:
            self._warn("metrics_values", f"{', '.join(odd)} of the engine's metrics page is no count: it was left out")
        of_engine = from_pages(before, after, decoded(records)) if before is not None and after is not None else None
        return from_responses(speculation) or of_engine or from_chunks(records)

    def _warn(self, code: CellWarningCode, text: str) -> None:
        self._warnings.setdefault(code, text)

    async def _warm_up(self, prompts: Sequence[Prompt], sender: Sender) -> None:
        if not prompts or self._stopped:
            return
        self._course.begin(len(prompts), self.settings.rounds)
        async with self._course.telling(WARM_UP):
            await sender.play(Part(prompts, self.concurrency, WARM_UP, time.perf_counter()), self._watch_failures)

    async def _rounds(
        self, measured: Sequence[StagedPrompt], sender: Sender
    ) -> tuple[list[Outcome], list[RoundWindow]]:
        outcomes: list[Outcome] = []
        windows: list[RoundWindow] = []
        origin_s = time.perf_counter()
        numbers = sorted({prompt.round for prompt in measured})
        self._course.begin(len(measured), len(numbers))
        planned = [sum(prompt.round == number for prompt in measured) for number in numbers]
        rounds: list[list[RequestRecord]] = []
        for number in numbers:
            if self._stopped:
                break
            prompts = [prompt for prompt in measured if prompt.round == number]
            async with self._course.telling(number):
                played = await sender.play(Part(prompts, self.concurrency, number, origin_s), self._watch_failures)
            of_round = [outcome.record for outcome in played.outcomes]
            if not played.agrees:
                self._warn("vllm_disagrees", f"vLLM's own medians of round {number + 1} are not those of its records")
            outcomes += played.outcomes
            failed = sum(outcome.record.error is not None for outcome in outcomes)
            self._course.over(len(outcomes), failed, played.tally.slow_failures)
            window = round_window(of_round, self.concurrency)
            if window is not None:
                windows.append(window)
            rounds.append(of_round)
            if self.settings.precision is not None and not self._stopped:
                self._saving = enough(
                    rounds, planned=planned, concurrency=self.concurrency, precision=self.settings.precision
                )
            if self._saving is not None:
                self._course.note(f"precise enough after {len(rounds)} rounds: {self._saving.requests} requests saved")
                break
        return outcomes, windows

    @property
    def _stopped(self) -> bool:
        return not self._warnings.keys().isdisjoint({"interrupted", "stopped_early", "budget"})

    def _watch_failures(self) -> None:
        """End a cell that can't give an answer any more, where going on would cost time."""
        tally = self._course.tally
        done, failed, slow = tally.done, tally.failed, tally.slow_failures
        enough = done >= max(50, 2 * self.concurrency) or (slow == done and done >= max(4, 2 * self.concurrency))
        left_s = self._course.left_s(done)
        if self._stopped or not enough or failed <= _STOP_SHARE * done or left_s is None or left_s < _STOP_LEFT_S:
            return
        text = f"{failed} of {done} requests failed: no answer can come of this cell; about {left_s:.0f} s were saved"
        self._warn("stopped_early", text)
        self._course.note(f"stopped early: {text}")
        self._stop()

    def _interrupt(self, number: int) -> None:
        self.on_signal(number)
        self._warn("interrupted", "the measurement was ended from outside; what was measured by then is kept")
        self._stop()

    def _out_of_time(self) -> None:
        self._warn("budget", "the run's budget was used up; what was measured by then is kept")
        self._stop()

    def _running(self) -> Tally:
        return self._sender.tally if self._sender is not None else Tally()

    async def _unless_stopped(self, work: Coroutine[Any, Any, Found], *, otherwise: Found) -> Found:
        """What `work` comes to; a signal or the deadline ends it, for it may wait for minutes."""
        if self._stopped:
            work.close()
            return otherwise
        task: asyncio.Task[Found] = asyncio.create_task(work)
        self._waiting = task
        try:
            return await task
        except asyncio.CancelledError:
            if not self._stopped:
                raise
            return otherwise
        finally:
            self._waiting = None

    def _stop(self) -> None:
        if self._waiting is not None:
            self._waiting.cancel()
        if self._sender is not None:
            self._sender.stop()


def _environment() -> dict[str, str]:
    return {
        "eagle-bench": __version__,
        "vllm": engine.VLLM_VERSION,
        "python": platform.python_version(),
        "client_cpus": str(os.cpu_count()),
        "client_platform": platform.platform(),
    }
