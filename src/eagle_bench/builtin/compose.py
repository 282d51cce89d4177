"""Makes `prompts.json`, the built-in data set, out of what was written by hand for it.

    passages.txt     texts of many sorts, each with tasks on it: to sum up, rewrite, translate, work out, copy from
    pairs.txt        tasks on two of the passages, `TITLE + TITLE | instruction`
    programs.txt     pieces of code, each with tasks on it
    questions.txt    what needs no text: a line each; ` || ` separates the turns of a conversation

A task is a line `@KIND instruction`, with `@KIND<` where the instruction follows the text and does not lead it. A text
leads at most once: prompts that begin alike would share the engine's prefix cache.

    python -m eagle_bench.builtin.compose
"""

from __future__ import annotations

import json
import re
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

HERE = Path(__file__).parent
OUTPUT = HERE / "prompts.json"
KINDS = ("chat", "code", "summary", "mathematics", "translation", "rewriting")
TASK = re.compile(rf"^@({'|'.join(KINDS)})(<?) (.+)$")
SPEAKERS = ("human", "gpt")


class Task(NamedTuple):
    """A line of a source. `after`: the instruction follows the text."""

    kind: str
    after: bool
    instruction: str


class Written(NamedTuple):
    """A prompt's kind and its turns, the user's first and last."""

    kind: str
    turns: tuple[str, ...]


def written() -> Iterator[Written]:
    """Every prompt, in the order of the sources."""
    passages = {}
    for title, text, tasks in _blocks("passages.txt"):
        passages[title] = text
        yield from _tasks_on(text, tasks)
    for kind, _, line in _tasks(_read("pairs.txt")):
        titles, instruction = line.split(" | ")
        first, second = (passages[title] for title in titles.split(" + "))
        yield Written(kind, (f"{instruction}\n\n1.\n{first}\n\n2.\n{second}",))
    for language, text, tasks in _blocks("programs.txt"):
        yield from _tasks_on(f"```{language}\n{text}\n```", tasks)
    for kind, _, line in _tasks(_read("questions.txt")):
        yield Written(kind, tuple(line.split(" || ")))


def _read(name: str) -> str:
    return (HERE / name).read_text(encoding="utf-8").strip()


def _blocks(name: str) -> Iterator[tuple[str, str, list[Task]]]:
    """Title, text and tasks of each part of a source; a line `# TITLE` begins a part."""
    for block in re.split(r"\n+(?=# )", _read(name)):
        title, *lines = block.splitlines()
        text = "\n".join(line for line in lines if not TASK.match(line)).strip()
        yield title.removeprefix("# "), text, _tasks("\n".join(line for line in lines if TASK.match(line)))


def _tasks(text: str) -> list[Task]:
    tasks = []
    for line in text.splitlines():
        match = TASK.match(line)
        if not match:
            raise ValueError(f"not a task: {line!r}")
        tasks.append(Task(match[1], match[2] == "<", match[3]))
    return tasks


def _tasks_on(text: str, tasks: list[Task]) -> Iterator[Written]:
    for kind, after, instruction in tasks:
        yield Written(kind, (f"{text}\n\n{instruction}" if after else f"{instruction}\n\n{text}",))


def compose() -> str:
    """The text of `prompts.json`: ShareGPT's form, with an id and a kind each."""
    number: Counter[str] = Counter()
    data = []
    for prompt in written():
        number[prompt.kind] += 1
        turns = [{"from": SPEAKERS[index % 2], "value": text} for index, text in enumerate(prompt.turns)]
        data.append({"id": f"{prompt.kind}-{number[prompt.kind]:03d}", "kind": prompt.kind, "conversations": turns})
    return json.dumps(data, ensure_ascii=False, indent=1) + "\n"


if __name__ == "__main__":
    OUTPUT.write_text(compose(), encoding="utf-8")
