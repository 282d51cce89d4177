"""The words that `init` writes where it can't know, for a person to replace before a run."""

from __future__ import annotations

import re
from typing import Any

from eagle_bench.config_problems import Place, field_shown

WEIGHTS, DRAFT = "MODEL-FOLDER", "DRAFT-MODEL"
MEANT = {
    WEIGHTS: "the gs:// folder of the model's weights",
    DRAFT: "the draft model, a gs:// folder or a Hugging Face id,",
}
# Alone, or as the value of an argument; not within a name of the person's own.
_WORD = re.compile(rf"(?<![\w./-])({'|'.join(MEANT)})(?![\w./-])")


def to_fill(word: str) -> str:
    """What a person has to do about a placeholder."""
    return f"Put {MEANT[word]} in the place of {word}."


def unfilled(data: dict[str, Any]) -> list[str]:
    """A sentence for each value of a config that is a placeholder still."""
    found: list[str] = []
    waiting: list[tuple[Place, Any]] = [((), data)]
    while waiting:
        place, value = waiting.pop(0)
        if isinstance(value, dict):
            waiting += [((*place, str(key)), inner) for key, inner in value.items()]
        elif isinstance(value, (list, tuple)):
            waiting += [((*place, number), inner) for number, inner in enumerate(value)]
        elif isinstance(value, str) and (word := _WORD.search(value)):
            found.append(f"`{field_shown(place)}` is not filled in. {to_fill(word[1])}")
    return found
