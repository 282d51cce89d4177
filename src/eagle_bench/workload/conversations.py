"""One object of a source as a prompt: whose turn is whose, what is sent of a recorded conversation."""

from __future__ import annotations

import json
from typing import Literal, NamedTuple

from eagle_bench.errors import InputError
from eagle_bench.units import whole
from eagle_bench.workload.prompts import Message, Prompt

ALLOWED = (
    "a JSON array or JSON lines of objects with `conversations` (ShareGPT), `messages` (OpenAI) or `prompt`, "
    "or CSV with a header and a named column"
)
Role = Literal["system", "user", "assistant"]
ROLES: dict[str, Role] = {
    "human": "user",
    "user": "user",
    "gpt": "assistant",
    "assistant": "assistant",
    "chatgpt": "assistant",
    "bing": "assistant",
    "bard": "assistant",
    "system": "system",
    "developer": "system",
}
LFS_POINTER = b"version https://git-lfs.github.com/spec/"  # what a clone has in place of a large file
EMPTY, NO_USER = "empty", "no user turn"
NESTED = "nested too deeply"
LONGEST_ANSWER = 1_000_000  # tokens
NOT_TEXT = "a turn that is not text, or not of user, assistant or system"


class Entry(NamedTuple):
    """One entry of a source: a prompt, or why it is none. `place` is its line or number, for messages."""

    place: str
    prompt: Prompt | None
    problem: str | None = None


class Malformed(InputError):
    """An object that no form allows."""

    def __init__(self, shown: str, place: str, found: str, allowed: str = ALLOWED) -> None:
        super().__init__(f"{shown}, {place}: {found}.", hint=f"Allowed: {allowed}.")


def entry_of(item: object, *, shown: str, place: str, number: int) -> Entry:
    """One object as an entry. What can't be a prompt by its content is counted later; a malformed one is an error.

    Args:
        shown, place: file and line, as errors name them.
        number: the object's id where it has none of its own.

    Raises:
        InputError: the object has none of the forms.
    """
    if not isinstance(item, dict):
        raise Malformed(shown, place, f"found {_json(item)}, not an object")
    try:
        turns, length = _turns_of(item), _length(item.get("output_tokens"))
        name, kind = _name(item.get("id")), _name(item.get("kind"))
    except _Wrong as wrong:
        raise Malformed(shown, place, wrong.found, wrong.allowed) from None
    except RecursionError:
        raise Malformed(shown, place, NESTED) from None
    messages, problem = _asked(turns, recorded="conversations" in item)
    if problem:
        return Entry(place, None, problem)
    prompt = Prompt(
        id=name or f"{number}",
        kind=kind or None,
        messages=tuple(messages),
        max_tokens=length,
    )
    return Entry(place, prompt)


def excerpt(text: str, length: int = 80) -> str:
    """The beginning of a text, for messages."""
    return text if len(text) <= length else f"{text[:length]}…"


class _Wrong(Exception):
    def __init__(self, found: str, allowed: str) -> None:
        super().__init__(found)
        self.found, self.allowed = found, allowed


Turn = tuple[Role | None, str | None]


def _turns_of(item: dict[str, object]) -> list[Turn]:
    if "conversations" in item:
        return _turns(item, "conversations", "from", "value")
    if "messages" in item:
        return _turns(item, "messages", "role", "content")
    if "prompt" in item:
        return [("user", _prompt(item["prompt"]))]
    keys = ", ".join(f"`{key}`" for key in item) or "nothing"
    raise _Wrong(f"found an object with {excerpt(keys)}", "one with `conversations`, `messages` or `prompt`")


def _turns(item: dict[str, object], key: str, speaker: str, text: str) -> list[Turn]:
    """(role, text) of each turn; None for a role or a content that can't be sent."""
    allowed = f'`{key}` as a list of {{"{speaker}": …, "{text}": …}}'
    value = item[key]
    if not isinstance(value, list):
        raise _Wrong(f"`{key}` is {_json(value)}", allowed)
    turns: list[Turn] = []
    for turn in value:
        if not isinstance(turn, dict) or speaker not in turn:
            raise _Wrong(f"a turn of `{key}` is {_json(turn)}", allowed)
        turns.append((ROLES.get(str(turn[speaker]).lower()), _text(turn.get(text))))
    return turns


def _prompt(value: object) -> str | None:
    if not isinstance(value, str):
        raise _Wrong(f"`prompt` is {_json(value)}", "`prompt` as a text")
    return _text(value)


def _text(content: object) -> str | None:
    if content is None:
        return ""
    if isinstance(content, list) and all(isinstance(part, dict) and part.get("type") == "text" for part in content):
        content = "\n".join(str(part.get("text", "")) for part in content)
    if not isinstance(content, str):
        return None
    return sendable(content)


def sendable(text: str) -> str:
    """Half of a surrogate pair is valid JSON and no text: it can't be sent, and becomes U+FFFD."""
    return text if text.isascii() else text.encode("utf-16", "surrogatepass").decode("utf-16", "replace")


def is_text(text: str) -> bool:
    """Whether a string can be sent and stored as it is: no half of a surrogate pair is in it."""
    return sendable(text) == text


def _name(value: object) -> str:
    """An id or a kind; "" where there is none."""
    return "" if value is None else sendable(str(value))


def _asked(turns: list[Turn], *, recorded: bool) -> tuple[list[Message], str | None]:
    """The messages to send, or why there are none.

    A conversation that ends with the user's turn is sent whole, one in `messages` up to and with the user's last
    turn. A ShareGPT conversation that ends with an answer is a record, often of dozens of turns: its opening question
    is sent, as vLLM's own loader does, so that figures compare. Answers before the first question are left out.
    """
    messages = [Message(role=role, content=text) for role, text in turns if role is not None and text is not None]
    if len(messages) < len(turns):
        return [], NOT_TEXT
    users = [index for index, message in enumerate(messages) if message.role == "user"]
    if not users:
        return [], NO_USER if messages else EMPTY
    last = users[0] if recorded and messages[-1].role != "user" else users[-1]
    asked = [m for index, m in enumerate(messages[: last + 1]) if index >= users[0] or m.role == "system"]
    return asked, None if asked[-1].content.strip() else EMPTY


def _length(value: object) -> int | None:
    if value is None:
        return None
    try:
        length = float(str(value))
    except ValueError:
        length = 0.0
    if not 1 <= length <= LONGEST_ANSWER or not length.is_integer():
        raise _Wrong(
            f"`output_tokens` is {_json(value)}", f"a whole number of at least 1 and at most {whole(LONGEST_ANSWER)}"
        )
    return int(length)


def _json(value: object) -> str:
    try:
        return excerpt(json.dumps(value, ensure_ascii=False, default=str))
    except RecursionError:
        return f"something {NESTED}"
