"""One round: its prompts through vLLM's benchmark, over our own connections, into records."""

from __future__ import annotations

import gc
import hashlib
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Any

from eagle_bench.adapters.vllm_client import engine
from eagle_bench.adapters.vllm_client.answer import Answer, read_answer
from eagle_bench.adapters.vllm_client.exchange import Exchange
from eagle_bench.adapters.vllm_client.health import Watch
from eagle_bench.adapters.vllm_client.payload import encode, fields, request_bytes
from eagle_bench.adapters.vllm_client.pool import Pool
from eagle_bench.adapters.vllm_client.target import Target, address
from eagle_bench.adapters.vllm_client.tokens import TokenKeeper, TokenUnavailable
from eagle_bench.metrics import inter_chunk_ms_p50
from eagle_bench.results import Capabilities, CellSettings, RequestError, RequestRecord, TokenSource
from eagle_bench.workload.prompts import Prompt

CountTokens = Callable[[str], int]

# Raw answers wait for the end of the round. Above this many bytes they are read at once instead:
# a small error in the stamps of others is better than no memory.
HELD_BYTES = 512 * 1024 * 1024
_SMALL_BYTES = 1024  # an answer that is quicker read than kept: refusals and empty ones, which must be counted while the round runs
# A server that sends without end would fill the memory. Servers send some 250 bytes for a token, each in a chunk of its own.
_ENVELOPE_BYTES, _TOKEN_BYTES = 1024 * 1024, 4096
UNAUTHORIZED = 401
# How far a count may be above the limit of the answer: engines draft a little beyond it, some count the end as a token.
_OVERSHOOT, _OVERSHOOT_TOKENS = 1.1, 8


@dataclass(frozen=True)
class Outcome:
    """What one request came to; `speculation` is the response's own word about it, `counted_by` who counted its tokens.

    `refused_usage` is what the server counted, where it is more than the request allowed.
    """

    record: RequestRecord
    speculation: dict[str, Any] | None = None
    counted_by: TokenSource | None = None
    refused_usage: int | None = None


@dataclass
class _Sent:
    """One request of a round: what came back, and the output that vLLM already holds a reference to."""

    output: Any
    limit: int  # of the answer, in tokens
    exchange: Exchange | None = None
    token: str | None = None
    answer: Answer | None = None
    counted_by: TokenSource | None = None
    refused_usage: int | None = None


@dataclass
class Tally:
    """What a running round has come to, cheaply: an answer that is not read yet counts as a success."""

    done: int = 0
    failed: int = 0
    slow_failures: int = 0  # time-outs, and connections that could not be made

    def __add__(self, other: Tally) -> Tally:
        return Tally(self.done + other.done, self.failed + other.failed, self.slow_failures + other.slow_failures)


@dataclass
class Round:
    """Sends prompts and keeps what comes back.

    The answers are read when the last one is in, so that no stream waits for another's parsing; the
    outputs that vLLM got are filled in then, just before it looks at them.
    """

    target: Target
    settings: CellSettings
    capabilities: Capabilities
    tokens: TokenKeeper
    pool: Pool
    count_tokens: CountTokens | None
    watch: Watch
    on_end: Callable[[], None]
    tally: Tally = field(default_factory=Tally)
    stopped: bool = False
    held_bytes: int = HELD_BYTES

    def __post_init__(self) -> None:
        self._address = address(self.target.chat_url)
        self._sent: dict[int, _Sent] = {}
        self._prompts: Sequence[Prompt] = ()
        self._bodies: list[bytes] = []
        self._samples: list[engine.Sample] = []
        self._concurrency = 1
        self._expected = 0
        self._held = 0

    async def prepare(self, prompts: Sequence[Prompt], concurrency: int) -> None:
        """Make the requests and open the connections; nothing is sent."""
        self._prompts, self._concurrency = prompts, concurrency
        limits = [prompt.max_tokens or self.settings.max_output_tokens for prompt in prompts]
        self._bodies = [
            encode(self.target.model, prompt.messages, fields(self.settings, self.capabilities, limit))
            for prompt, limit in zip(prompts, limits, strict=True)
        ]
        self._expected = len(prompts)
        self._samples = [
            engine.Sample(
                [{"role": m.role, "content": m.content} for m in prompt.messages], prompt.prompt_tokens or 0, limit
            )
            for prompt, limit in zip(prompts, limits, strict=True)
        ]
        await self.pool.open(min(concurrency, len(prompts)))

    async def run(self) -> engine.EngineResult:
        """Run vLLM's benchmark over the prompts and give its own result; `outcomes` has ours."""
        gc.disable()  # a collection in the middle would hold up every stamp
        self.watch.open()
        try:
            return await engine.run(
                self._request, self._samples, url=self.target.chat_url, concurrency=self._concurrency
            )
        finally:
            self.watch.close()
            gc.enable()

    def outcomes(self, number: int, origin_s: float) -> list[Outcome]:
        """What was really sent, in the order of the prompts.

        Args:
            origin_s: the cell's start on the clock of the stamps (`time.perf_counter()`).
        """
        found = []
        for index, prompt in enumerate(self._prompts):
            sent = self._sent[index]
            if sent.answer is not None and sent.exchange is not None:
                made = record(prompt, sent.answer, sent.exchange, number, origin_s, store_text=self.settings.store_text)
                told = (sent.answer.speculation, sent.counted_by, sent.refused_usage) if made.error is None else ()
                found.append(Outcome(made, *told))
        return found

    def stop(self) -> None:
        """Send nothing more and drop what runs; the round then ends at once."""
        self.stopped = True
        self.pool.stop()

    async def _request(self, request_func_input: Any, session: Any, pbar: Any = None) -> Any:
        """vLLM's request function."""
        from vllm.benchmarks.lib.endpoint_request_func import RequestFuncOutput

        index = int(request_func_input.request_id)
        sent = _Sent(RequestFuncOutput(prompt_len=request_func_input.prompt_len), self._samples[index].max_tokens)
        self._sent[index] = sent
        if not self.stopped:
            await self._exchange(index, sent)
        sent.output.start_time = (sent.exchange.sent_s if sent.exchange else None) or time.perf_counter()
        if len(self._sent) == self._expected and all(s.exchange or self.stopped for s in self._sent.values()):
            self._read_all()
        return sent.output

    async def _exchange(self, index: int, sent: _Sent) -> None:
        exchange = Exchange()
        try:
            sent.token = await self.tokens.current()
        except TokenUnavailable as error:
            exchange.fail("token", str(error))
        else:
            request = request_bytes(self._address, self._bodies[index], sent.token)
            longest_bytes = _ENVELOPE_BYTES + sent.limit * _TOKEN_BYTES
            exchange = await self.pool.send(request, self.settings.request_timeout_s, longest_bytes)
        sent.exchange = exchange
        if exchange.fault_kind == "stopped":
            return
        self._held += len(exchange.data)
        if len(exchange.data) < _SMALL_BYTES or self._held > self.held_bytes:
            self._read(sent)
        self.tally.done += 1
        self.tally.failed += exchange.fault is not None or (sent.answer is not None and sent.answer.error is not None)
        self.tally.slow_failures += exchange.fault_kind in {"timeout", "connection"}
        self.on_end()

    def _read_all(self) -> None:
        self.watch.close()  # the last stream has ended: nobody waits for this
        for sent in self._sent.values():
            if sent.exchange is not None and sent.exchange.fault_kind != "stopped":
                self._read(sent)

    def _read(self, sent: _Sent) -> None:
        """Read one answer and fill in the output that vLLM holds."""
        exchange, output = sent.exchange, sent.output
        if sent.answer is not None or exchange is None:
            return
        answer = sent.answer = read_answer(exchange, sent.token)
        self._held -= len(exchange.data)
        exchange.data = bytearray()
        if sent.token and answer.status == UNAUTHORIZED:
            self.tokens.refused(sent.token)
        if answer.error is not None or exchange.sent_s is None:
            output.error = answer.error.body if answer.error else "not sent"
            return
        if answer.output_tokens is not None and answer.output_tokens > _OVERSHOOT * sent.limit + _OVERSHOOT_TOKENS:
            sent.refused_usage, answer.output_tokens, answer.first_chunk_tokens = answer.output_tokens, None, None
        if answer.output_tokens is not None:
            sent.counted_by = "usage"
        elif self.count_tokens is not None:
            sent.counted_by = "tokenizer"
            answer.output_tokens = self.count_tokens(answer.text)
            answer.first_chunk_tokens = self.count_tokens(answer.first_text)
        output.success = True
        output.ttft = answer.content_s[0] - exchange.sent_s
        output.latency = answer.content_s[-1] - exchange.sent_s
        output.output_tokens = answer.output_tokens or 1
        output.generated_text = answer.text


def record(
    prompt: Prompt, answer: Answer, exchange: Exchange, number: int, origin_s: float, *, store_text: bool
) -> RequestRecord:
    """One request as it is stored, of round `number`."""
    sent_s = exchange.sent_s
    first, last = (answer.content_s[0], answer.content_s[-1]) if answer.content_s else (None, None)
    error = answer.error
    if exchange.fault_kind == "token":
        error = RequestError(kind="authentication", status=None, body=exchange.fault or "")
    start = sent_s if sent_s is not None else exchange.ended_s
    return RequestRecord(
        prompt_id=prompt.id,
        kind=prompt.kind,
        round=number,
        start_s=start - origin_s,
        end_s=exchange.ended_s - origin_s,
        ttft_ms=(first - start) * 1000 if first is not None else None,
        e2e_ms=(last - start) * 1000 if last is not None else None,
        connect_ms=exchange.connect_s * 1000 if sent_s is not None else None,
        prompt_tokens=answer.prompt_tokens or prompt.prompt_tokens,
        output_tokens=answer.output_tokens,
        first_chunk_tokens=answer.first_chunk_tokens,
        cached_tokens=answer.cached_tokens,
        hidden_tokens=answer.hidden_tokens,
        chunks=len(answer.content_s),
        inter_chunk_ms_p50=inter_chunk_ms_p50(answer.content_s),
        text=answer.text if store_text and answer.text else None,
        text_sha256=hashlib.sha256(answer.text.encode()).hexdigest() if answer.text else None,
        error=error,
    )
