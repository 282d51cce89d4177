"""Writes a file like ShareGPT's, of any size: `python -m servers.sharegpt FILE CONVERSATIONS`.

With 94,000 conversations it is about 700 MB, as the real one. Like it, it has pieces of long conversations that begin
with an answer, empty ones, repeated prompts, openings that many share, prompts of one word and of pages, and text of
many scripts.
"""

from __future__ import annotations

import json
import random
import sys
from collections.abc import Iterator
from pathlib import Path

SYLLABLES = [
    "ka",
    "to",
    "ri",
    "me",
    "sun",
    "lor",
    "vent",
    "ica",
    "pro",
    "tal",
    "den",
    "mis",
    "que",
    "ba",
    "nor",
    "fel",
    "ther",
    "ing",
    "ost",
    "ul",
    "gra",
    "pen",
    "sol",
    "ite",
    "mar",
]
WORDS = [a + b + c for a in SYLLABLES for b in SYLLABLES for c in ("", "s", "ra")]
SCRIPTS = ("дом река свет время", "水 山 道 春 風 月", "नदी पहाड़ समय घर", "día niño corazón mañana", "🙂 🎻 🚲")


def conversations(count: int, *, seed: int = 0, mean_turns: float = 4.0) -> Iterator[dict[str, object]]:
    """Conversations in ShareGPT's form, the same for the same arguments."""
    rng = random.Random(seed)
    for number in range(count):
        turns = []
        pairs = 1 + int(rng.expovariate(1 / (mean_turns / 2)))
        if rng.random() < 0.1:  # the rest of a conversation that was cut
            turns.append({"from": "gpt", "value": _text(rng, 200)})
        for _ in range(pairs):
            turns.append({"from": "human", "value": _question(rng, number)})
            turns.append({"from": "gpt", "value": _text(rng, int(rng.lognormvariate(5.3, 0.9)))})
        if rng.random() < 0.02:
            turns = []
        yield {"id": f"{number:x}_{number % 7}", "conversations": turns}


def _question(rng: random.Random, number: int) -> str:
    shape = rng.random()
    if shape < 0.02:
        return "continue"
    if shape < 0.05:
        return "I want you to act as a seasoned editor who improves texts of every kind. My text: " + _text(rng, 60)
    if shape < 0.06:
        return ""
    if shape < 0.09:
        return f"{rng.choice(SCRIPTS)} {number} " + " ".join(rng.choice(SCRIPTS) for _ in range(rng.randrange(3, 40)))
    return _text(rng, max(2, int(rng.lognormvariate(3.4, 1.3))))


def _text(rng: random.Random, words: int) -> str:
    return " ".join(rng.choices(WORDS, k=words))


def write(path: Path, count: int, **options: float) -> None:
    """Write `count` conversations as one JSON array, one at a time."""
    with path.open("w", encoding="utf-8") as file:
        file.write("[")
        for index, conversation in enumerate(conversations(count, **options)):  # type: ignore[arg-type]
            file.write(("," if index else "") + "\n " + json.dumps(conversation, ensure_ascii=index % 2 == 0))
        file.write("\n]\n")


if __name__ == "__main__":
    write(Path(sys.argv[1]), int(sys.argv[2]))
