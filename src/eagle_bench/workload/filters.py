"""Which prompts may be used: a filter each has to pass, and a count of what was dropped and why."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from hashlib import blake2b
from pathlib import Path
from typing import Protocol

from eagle_bench.errors import InputError, because
from eagle_bench.workload.conversations import Entry, excerpt
from eagle_bench.workload.prompts import Drop, Message, Prompt

SHARED_PREFIX_BYTES = 64


class TemplateRefusal(InputError):
    """A chat template takes no such conversation; the endpoint that has it would refuse it, too."""

    def __init__(self, folder: Path, why: object) -> None:
        super().__init__(because(f"{folder}: its chat template refuses a conversation", why))
        self.why = str(why)


class TokenCounter(Protocol):
    """Counts tokens as the server will see them."""

    def count(self, messages: Sequence[Message]) -> int:
        """Tokens of a conversation with the chat template and the start of the answer.

        Raises:
            TemplateRefusal: it can't be written so.
        """
        ...

    def count_text(self, text: str) -> int:
        """Tokens of a text alone."""
        ...


def prefix_of(messages: Sequence[Message]) -> bytes:
    """What must differ between two prompts on one endpoint: their first 64 bytes beyond the system message.

    An engine's prefix cache saves whole blocks, of 16 tokens in vLLM. 64 bytes of UTF-8 are about 16 tokens, in English
    (4 bytes a token) as in Chinese (21 characters of 3 bytes), so prompts that differ within them have at most a
    block in common beyond what the chat template gives all of them. System messages count by their whole text, equal or
    not: a long one that all prompts share is cached after the first, in every variant and cell alike. A fixed length makes "shares a long prefix" an equivalence: one
    look-up per prompt decides it, however many there are.
    """
    system = "\x1f".join(m.content for m in messages if m.role == "system")
    rest = "\x1f".join(m.content for m in messages if m.role != "system")
    return blake2b(system.encode() + b"\x1e" + rest.encode()[:SHARED_PREFIX_BYTES], digest_size=8).digest()


def text_of(messages: Sequence[Message]) -> bytes:
    """Hash of a whole conversation: equal for equal ones."""
    text = "\x1e".join(f"{m.role}\x1f{m.content}" for m in messages)
    return blake2b(text.encode(), digest_size=8).digest()


@dataclass
class Sieve:
    """Admits prompts one after another; the first of those that share a prefix wins.

    Args:
        counter: None leaves the length limits out: without a tokenizer no length is known.
        min_tokens, max_tokens: limits of a prompt's length, both allowed.

    Keeps two short hashes and the id of each prompt admitted, so 94,000 conversations cost some 30 MB.
    """

    counter: TokenCounter | None
    min_tokens: int
    max_tokens: int
    read: int = 0
    kept: int = 0
    _refused: str | None = None
    _dropped: Counter[str] = field(default_factory=Counter)
    _prefixes: set[bytes] = field(default_factory=set)
    _texts: set[bytes] = field(default_factory=set)
    _ids: set[str] = field(default_factory=set)

    def admit(self, entry: Entry) -> Prompt | None:
        """The prompt, with its length where a tokenizer is at hand and an id of its own; None where it is dropped."""
        self.read += 1
        prompt = entry.prompt
        if prompt is None:
            self._dropped[entry.problem or "unusable"] += 1
            return None
        text, prefix = text_of(prompt.messages), prefix_of(prompt.messages)
        tokens = None
        reason = self._seen(text, prefix)
        if reason is None and self.counter is not None:
            try:
                tokens = self.counter.count(prompt.messages)
                reason = self._outside(tokens)
            except TemplateRefusal as refusal:  # the first one's words: those that follow may name their conversation
                self._refused = self._refused or f"refused by the chat template: {excerpt(refusal.why.strip())}"
                reason = self._refused
        if reason is not None:
            self._dropped[reason] += 1
            return None
        self._texts.add(text)
        self._prefixes.add(prefix)
        self.kept += 1
        return prompt.model_copy(update={"prompt_tokens": tokens, "id": unique_id(prompt.id, self._ids)})

    def _seen(self, text: bytes, prefix: bytes) -> str | None:
        if text in self._texts:
            return "the same as another prompt"
        if prefix in self._prefixes:
            return f"begins with the same {SHARED_PREFIX_BYTES} bytes as another prompt"
        return None

    def _outside(self, tokens: int) -> str | None:
        if tokens < self.min_tokens:
            return f"shorter than min_prompt_tokens = {self.min_tokens}"
        if tokens > self.max_tokens:
            return f"longer than max_prompt_tokens = {self.max_tokens}"
        return None

    def dropped(self) -> tuple[Drop, ...]:
        """What was dropped and why, the most frequent reason first."""
        return tuple(Drop(reason=reason, count=count) for reason, count in self._dropped.most_common())


def unique_id(wanted: str, taken: set[str]) -> str:
    """`wanted`, or with a number where it is taken: results are paired by id."""
    chosen, number = wanted, 2
    while chosen in taken:
        chosen, number = f"{wanted}~{number}", number + 1
    taken.add(chosen)
    return chosen


def sampling_key(seed: int, salt: str = "") -> Callable[[Prompt], bytes]:
    """A random-looking but fixed order: sorted by it, the first N are a sample that the seed alone decides."""

    def key(prompt: Prompt) -> bytes:
        return blake2b(f"{seed}\x1f{salt}\x1f{prompt.id}".encode() + text_of(prompt.messages), digest_size=16).digest()

    return key
