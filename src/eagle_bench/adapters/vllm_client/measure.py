"""One cell: one endpoint at one concurrency, warm-up and rounds, into a `CellResult`."""

from __future__ import annotations

import asyncio
import gc
import os
import platform
import signal
import threading
import time
from collections import Counter
from collections.abc import AsyncIterator, Callable, Iterator, Sequence
from contextlib import asynccontextmanager, contextmanager
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path

from eagle_bench import __version__
from eagle_bench.adapters.vllm_client import engine
from eagle_bench.adapters.vllm_client.health import Watch, health, suspect
from eagle_bench.adapters.vllm_client.payload import TokenKeeper, payload_sha256
from eagle_bench.adapters.vllm_client.probe import Probed, probe
from eagle_bench.adapters.vllm_client.rounds import CountTokens, Round, Tally, record
from eagle_bench.adapters.vllm_client.target import Progress, Target, address
from eagle_bench.adapters.vllm_client.wire import Pool
from eagle_bench.errors import InputError
from eagle_bench.metrics import cell_metrics, counts, failure_rate, round_window
from eagle_bench.results import (
    CellFailure,
    CellResult,
    CellSettings,
    PromptsUsed,
    RequestRecord,
    RoundWindow,
    TokenSource,
)
from eagle_bench.workload.prompts import Prompt, StagedPrompt, sha256_of

_TICK_S = 2.0
_STOP_SHARE = 0.5  # of failures: above it a cell has no answer to give
_STOP_LEFT_S = 30.0  # and only where going on would cost something


def measure(
    target: Target,
    warmup: Sequence[Prompt],
    measured: Sequence[StagedPrompt],
    *,
    variant: str,
    concurrency: int,
    settings: CellSettings,
    tokenizer: Path | None = None,
    run_id: str | None = None,
    on_progress: Callable[[Progress], None] = lambda _: None,
) -> CellResult:
    """Measure one cell with vLLM's benchmark.

    What goes wrong with the endpoint is in the result, never an exception: a cell without a
    successful request has `metrics` None and a `failure`. SIGTERM and SIGINT end the measurement
    early; what was measured is returned with the warning "interrupted".

    Args:
        warmup: sent first, through the same path, and thrown away.
        measured: each belongs to the round it names; rounds run one after another.
        tokenizer: a folder with `tokenizer.json`, for servers that send no usage.
        on_progress: called every few seconds, and at the ends of rounds.

    Raises:
        InputError: no prompts, a URL that can't be used, another vLLM than the pinned one, or tokens
            that nobody counts (no usage from the server and no tokenizer).
    """
    if not measured:
        raise InputError("there are no prompts to measure.")
    address(target.chat_url)
    count_tokens = _counter(tokenizer) if tokenizer else None
    engine.load()
    gc.collect()
    gc.freeze()  # vLLM's imports leave a heap that takes a fifth of a second to look through
    cell = _Cell(target, variant, concurrency, settings, count_tokens, run_id, on_progress)
    try:
        return asyncio.run(cell.run(warmup, measured))
    finally:
        gc.unfreeze()


def _counter(folder: Path) -> CountTokens:
    """Counts the tokens of a text."""
    file = folder / "tokenizer.json" if folder.is_dir() else folder
    if file.is_file() and file.suffix == ".json":
        from tokenizers import Tokenizer

        fast = Tokenizer.from_file(str(file))
        return lambda text: len(fast.encode(text, add_special_tokens=False).ids)
    if not folder.is_dir():
        raise InputError(f"{folder}: no tokenizer: it must be a folder with tokenizer.json in it.")
    from transformers import AutoTokenizer

    try:
        slow = AutoTokenizer.from_pretrained(str(folder), local_files_only=True)
    except (OSError, ValueError) as error:
        raise InputError(f"{folder}: no tokenizer can be read there: {error}") from None
    return lambda text: len(slow(text, add_special_tokens=False).input_ids)


@dataclass
class _Cell:
    target: Target
    variant: str
    concurrency: int
    settings: CellSettings
    count_tokens: CountTokens | None
    run_id: str | None
    on_progress: Callable[[Progress], None]

    def __post_init__(self) -> None:
        self._now: Round | None = None
        self._progress = Progress(self.concurrency, -1, self.settings.rounds, 0, 0, 0)
        self._ended = Tally()
        self._total = 0
        self._began_s = 0.0
        self._warnings: list[str] = []

    async def run(self, warmup: Sequence[Prompt], measured: Sequence[StagedPrompt]) -> CellResult:
        started_at = datetime.now(UTC).isoformat(timespec="seconds")
        began_s = time.perf_counter()
        tokens = TokenKeeper(self.target.token)
        with self._signals():
            probed = await probe(self.target, self.settings, tokens, self._note)
            self.target = probed.target
            self._check_counting(probed)
            settings = self.settings.model_copy(
                update={"payload_sha256": payload_sha256(self.settings, probed.capabilities)}
            )
            await self._warm_up(warmup, settings, probed, tokens)
            watch = Watch()
            records, windows = await self._rounds(measured, settings, probed, tokens, watch)
        count = counts(records)
        metrics = cell_metrics(records, windows, slo_ttft_ms=settings.slo_ttft_ms, slo_tpot_ms=settings.slo_tpot_ms)
        client = health([watch])
        if suspect(client, metrics):
            self._warnings.append("client-slow")
        if (failure_rate(count) or 0.0) > settings.max_failure_rate:
            self._warnings.append("failure-rate")
        return CellResult(
            run_id=self.run_id,
            variant=self.variant,
            concurrency=self.concurrency,
            started_at=started_at,
            duration_s=time.perf_counter() - began_s,
            settings=settings,
            environment=_environment(),
            capabilities=probed.capabilities,
            counts=count,
            metrics=metrics,
            acceptance=None,
            token_source=self._token_source(records, probed),
            prompts=PromptsUsed(count=len(measured), sha256=sha256_of(measured)),
            client=client,
            rounds=tuple(windows),
            warnings=tuple(dict.fromkeys(self._warnings)),
            failure=_failure(records, probed) if metrics is None else None,
            requests=tuple(records),
        )

    def _check_counting(self, probed: Probed) -> None:
        if probed.error is None and not probed.capabilities.usage_in_stream and self.count_tokens is None:
            raise InputError(
                f"{self.target.base_url} sends no usage with its streams, and no tokenizer was given: "
                "nobody would count the tokens.",
                hint="Give the tokenizer of the model that is served.",
            )

    async def _warm_up(
        self, prompts: Sequence[Prompt], settings: CellSettings, probed: Probed, tokens: TokenKeeper
    ) -> None:
        if not prompts or "interrupted" in self._warnings:
            return
        self._progress = Progress(self.concurrency, -1, settings.rounds, 0, len(prompts), 0)
        self._ended, self._total, self._began_s = Tally(), len(prompts), time.perf_counter()
        pool = Pool(address(self.target.chat_url))
        async with self._ticker():
            warm = self._round(settings, probed, tokens, pool, Watch())
            await warm.run(prompts, self.concurrency)
        pool.close()

    async def _rounds(
        self,
        measured: Sequence[StagedPrompt],
        settings: CellSettings,
        probed: Probed,
        tokens: TokenKeeper,
        watch: Watch,
    ) -> tuple[list[RequestRecord], list[RoundWindow]]:
        records: list[RequestRecord] = []
        windows: list[RoundWindow] = []
        self._ended, self._total, self._began_s = Tally(), len(measured), time.perf_counter()
        pool = Pool(address(self.target.chat_url))
        origin_s = time.perf_counter()
        numbers = sorted({prompt.round for prompt in measured})
        for number in numbers:
            if self._stopped:
                break
            prompts = [prompt for prompt in measured if prompt.round == number]
            self._progress = Progress(
                self.concurrency, number, len(numbers), self._ended.done, self._total, self._ended.failed
            )
            now = self._round(settings, probed, tokens, pool, watch)
            async with self._ticker():
                rows, _ = await now.run(prompts, self.concurrency)
            of_round = [
                record(prompt, answer, exchange, number=number, origin_s=origin_s, store_text=settings.store_text)
                for prompt, answer, exchange in rows
            ]
            records += of_round
            self._ended = Tally(
                done=len(records),
                failed=counts(records).failed,
                slow_failures=self._ended.slow_failures + now.tally.slow_failures,
            )
            self._tell()
            window = round_window(of_round, self.concurrency)
            if window is not None:
                windows.append(window)
        pool.close()
        return records, windows

    def _round(self, settings: CellSettings, probed: Probed, tokens: TokenKeeper, pool: Pool, watch: Watch) -> Round:
        self._now = Round(
            target=self.target,
            settings=settings,
            capabilities=probed.capabilities,
            tokens=tokens,
            pool=pool,
            count_tokens=self.count_tokens,
            watch=watch,
            on_end=self._watch_failures,
        )
        return self._now

    @property
    def _stopped(self) -> bool:
        return "interrupted" in self._warnings or "stopped-early" in self._warnings

    def _watch_failures(self, tally: Tally) -> None:
        """End a cell that can't give an answer any more, where going on would cost time."""
        done, failed = self._ended.done + tally.done, self._ended.failed + tally.failed
        slow = self._ended.slow_failures + tally.slow_failures
        enough = done >= max(50, 2 * self.concurrency) or (slow == done and done >= max(4, 2 * self.concurrency))
        left_s = self._left_s(done)
        if self._stopped or not enough or failed <= _STOP_SHARE * done or left_s is None or left_s < _STOP_LEFT_S:
            return
        self._warnings.append("stopped-early")
        self._note(
            f"stopped early: {failed} of {done} requests failed, so this cell has no answer to give; "
            f"about {left_s:.0f} s saved"
        )
        if self._now is not None:
            self._now.stop()

    def _interrupt(self) -> None:
        if "interrupted" not in self._warnings:
            self._warnings.append("interrupted")
        if self._now is not None:
            self._now.stop()

    @contextmanager
    def _signals(self) -> Iterator[None]:
        """SIGTERM and SIGINT end the measurement and keep what there is. Only the main thread gets signals."""
        if threading.current_thread() is not threading.main_thread():
            yield
            return
        loop = asyncio.get_running_loop()
        before = {number: signal.getsignal(number) for number in (signal.SIGTERM, signal.SIGINT)}
        for number in before:
            loop.add_signal_handler(number, self._interrupt)
        try:
            yield
        finally:
            for number, handler in before.items():
                loop.remove_signal_handler(number)
                signal.signal(number, handler)

    @property
    def _tally(self) -> Tally:
        now = self._now.tally if self._now is not None else Tally()
        return Tally(self._ended.done + now.done, self._ended.failed + now.failed)

    def _left_s(self, done: int) -> float | None:
        spent = time.perf_counter() - self._began_s
        return spent / done * (self._total - done) if done else None

    def _tell(self) -> None:
        tally = self._ended
        self.on_progress(self._with(tally))

    def _with(self, tally: Tally) -> Progress:
        at = self._progress
        left = self._left_s(tally.done)
        return Progress(at.concurrency, at.round, at.rounds, tally.done, self._total, tally.failed, left)

    def _note(self, text: str) -> None:
        at = self._progress
        self.on_progress(Progress(at.concurrency, at.round, at.rounds, at.done, at.total, at.failed, note=text))

    @asynccontextmanager
    async def _ticker(self) -> AsyncIterator[None]:
        """Tell how it goes every few seconds while the block runs."""

        async def tick() -> None:
            while True:
                await asyncio.sleep(_TICK_S)
                self.on_progress(self._with(self._tally))

        task = asyncio.create_task(tick())
        try:
            yield
        finally:
            task.cancel()

    def _token_source(self, records: Sequence[RequestRecord], probed: Probed) -> TokenSource | None:
        if all(r.error is not None or r.output_tokens is None for r in records):
            return None
        return "usage" if probed.capabilities.usage_in_stream else "tokenizer"


def _failure(records: Sequence[RequestRecord], probed: Probed) -> CellFailure:
    """Why there is nothing: the commonest error, in the server's own words."""
    errors = [r.error for r in records if r.error is not None] or ([probed.error] if probed.error else [])
    if not errors:
        return CellFailure(stage="benchmark", kind="interrupted", message="No request was sent.")
    kind = Counter(error.kind for error in errors).most_common(1)[0][0]
    error = next(e for e in errors if e.kind == kind)
    status = f", HTTP {error.status}" if error.status else ""
    return CellFailure(
        stage="benchmark",
        kind=kind,
        message=f"None of {len(records)} requests succeeded; {sum(e.kind == kind for e in errors)} × {kind}{status}: "
        f"{error.body[:500]}",
    )


def _environment() -> dict[str, str]:
    return {
        "eagle-bench": __version__,
        "vllm": engine.VLLM_VERSION,
        "python": platform.python_version(),
        "client_cpus": str(os.cpu_count()),
        "client_platform": platform.platform(),
    }
