"""The command as a user starts it, on configs whose engine is tiny: real pipeline, real client, quick answers."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path

import pytest
import yaml

TESTS = Path(__file__).parents[1]
TINY_ENGINE = TESTS / "contract" / "tiny_engine.py"
COMMAND = (sys.executable, "-m", "eagle_bench")
CONFIG = {
    "model": "some/model",
    "tokenizer": None,
    "serving": {"invoke_route": True},
    "variants": [{"id": "baseline"}, {"id": "other"}],
    "workload": {"prompts_per_level": 50, "max_output_tokens": 32},
    "concurrency": [1, 2],
}


@dataclass
class Started:
    """A command that is running, and what it has said so far."""

    process: subprocess.Popen[str]
    lines: list[str] = field(default_factory=list)

    def until(self, words: str) -> str:
        """Read on to a line with these words."""
        assert self.process.stdout
        for line in self.process.stdout:
            self.lines.append(line)
            if words in line:
                return line
        raise AssertionError(f"it ended without saying {words!r}:\n{self.text}")

    def finish(self) -> int:
        assert self.process.stdout
        self.lines += self.process.stdout
        return self.process.wait()

    @property
    def text(self) -> str:
        return "".join(self.lines)


@pytest.fixture
def config(tmp_path: Path, tokenizer_folder: Path) -> Callable[..., Path]:
    """Write a config with these fields changed."""

    def write(**fields: object) -> Path:
        path = tmp_path / "bench.yaml"
        path.write_text(yaml.safe_dump({**CONFIG, "tokenizer": str(tokenizer_folder), **fields}))
        return path

    return write


@pytest.fixture(scope="session")
def tokenizer_folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A small real tokenizer: one token a word."""
    from tokenizers import Tokenizer, models, pre_tokenizers

    folder = tmp_path_factory.mktemp("tokenizer")
    tokenizer = Tokenizer(models.WordLevel({"[UNK]": 0}, unk_token="[UNK]"))
    tokenizer.pre_tokenizer = pre_tokenizers.Whitespace()
    tokenizer.save(str(folder / "tokenizer.json"))
    template = "{% for message in messages %}{{ message.role }} {{ message.content }} {% endfor %}"
    settings = {"tokenizer_class": "PreTrainedTokenizerFast", "unk_token": "[UNK]", "chat_template": template}
    (folder / "tokenizer_config.json").write_text(json.dumps(settings))
    return folder


@pytest.fixture
def engines(tmp_path: Path) -> Callable[..., Path]:
    """Write the file that maps every image to the tiny engine with these flags."""

    def write(*flags: str) -> Path:
        path = tmp_path / "engines.yaml"
        command = [sys.executable, str(TINY_ENGINE), "{host}", "{port}", *flags]
        path.write_text(yaml.safe_dump({"engines": {"default": {"command": command}}, "stop_grace_s": 2.0}))
        return path

    return write


@pytest.fixture
def start() -> Callable[..., Started]:
    """Start the command; what it says on both streams comes line by line."""
    # Whoever runs the tests may ignore HUP, which a command would go on with; a handler it does not inherit.
    before = signal.signal(signal.SIGHUP, lambda *_: None)
    running: list[subprocess.Popen[str]] = []

    def start(*arguments: object, **environment: str) -> Started:
        process = subprocess.Popen(
            [*COMMAND, *(str(argument) for argument in arguments)],
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
            env={**os.environ, "COLUMNS": "200", "PYTHONUNBUFFERED": "1", **environment},
            start_new_session=True,
        )
        running.append(process)
        return Started(process)

    yield start
    signal.signal(signal.SIGHUP, before)
    for process in running:
        if process.poll() is None:
            os.killpg(process.pid, signal.SIGKILL)
