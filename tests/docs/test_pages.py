"""The pages of docs/: every command on them is one that is taken, the cheap ones run, and what they name is there."""

from __future__ import annotations

import importlib
import json
import os
import re
import shlex
import subprocess
import sys
from pathlib import Path
from typing import ClassVar

import click
import pytest
import yaml

import eagle_bench
from eagle_bench import cli, config_file, notebook
from eagle_bench.config import ON_VERTEX_AI
from eagle_bench.estimate import Assumptions, estimate
from eagle_bench.local_vertex.settings import Settings
from eagle_bench.tasks.stage_data import check_here, preflight
from servers.tokenizers import SMOL, write_tokenizer
from simulated_cells import BASELINE, EAGLE, cell

ROOT = Path(__file__).parents[2]
DOCS = ROOT / "docs"
PAGES = {str(path.relative_to(DOCS)): path.read_text(encoding="utf-8") for path in sorted(DOCS.rglob("*.md"))}
OURS = re.compile(r"^(?:\.venv/bin/)?eagle-bench (.*)$")
OTHERS = re.compile(
    r"make |gcloud |export |read -rs |python3? |at\(\)|PROJECT=|OWNER=|printf |sed |terraform |docker |gsutil "
)
# What measures, waits or reaches Google is parsed, not run.
CHEAP = {"init", "validate", "plan", "compile"}


def blocks(text: str, language: str) -> list[str]:
    return re.findall(rf"^```{language}\n(.*?)^```$", text, re.MULTILINE | re.DOTALL)


def ours(text: str) -> list[list[str]]:
    """The words of each of our command lines, in `sh` and `text` blocks; what stands behind a pipe is not ours."""
    lines = [line for language in ("sh", "text") for block in blocks(text, language) for line in block.splitlines()]
    found = [match[1].partition(" | ")[0] for line in lines if (match := OURS.match(line.strip()))]
    return [shlex.split(line) for line in found]


USAGE = "reference/command-line.md"  # made from the commands
LINES = sorted({(page, shlex.join(words)) for page, text in PAGES.items() if page != USAGE for words in ours(text)})


@pytest.mark.parametrize(("page", "line"), LINES)
def test_a_command_line_is_taken(page, line):
    """Parsed as the command would: an option that is not there, or a value that can't be, fails."""
    name, *arguments = shlex.split(line)
    assert name in cli.COMMANDS, line
    command: click.Command = importlib.import_module(f"eagle_bench.commands.{name}").command
    command.make_context(name, arguments)


def test_every_line_of_a_shell_block_is_known():
    for page, text in PAGES.items():
        for line in (line for block in blocks(text, "sh") for line in block.splitlines() if line.strip()):
            assert OURS.match(line) or OTHERS.match(line), f"{page}: {line}"


def executed() -> list[str]:
    """Pages with something cheap in an `sh` block."""
    return [page for page, text in PAGES.items() if any("eagle-bench" in block for block in blocks(text, "sh"))]


@pytest.mark.parametrize("page", executed())
def test_what_is_cheap_runs(page, tmp_path, monkeypatch, capsys):
    """The lines of a page in their order, in one folder, as a reader would; in this process, to import kfp once."""
    (tmp_path / "examples").symlink_to(ROOT / "examples")
    (tmp_path / "docs").symlink_to(ROOT / "docs")
    (tmp_path / "cells").mkdir()
    for name, engine in (("baseline", BASELINE), ("eagle3", EAGLE)):
        (tmp_path / "cells" / f"{name}.json").write_text(json.dumps(cell(name, 4, engine, prompts=100)))
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("NO_GCE_CHECK", "true")  # nobody looks for a machine of Google around this one
    for line in (line for block in blocks(PAGES[page], "sh") for line in block.splitlines()):
        found = OURS.match(os.path.expandvars(line))
        if line.startswith("export "):
            for name, equals, value in (word.partition("=") for word in shlex.split(line)):
                if equals:
                    monkeypatch.setenv(name, os.path.expandvars(value))
        elif line.startswith(("printf ", "sed ")):
            subprocess.run(line, shell=True, check=True)
        elif found and (found[1].split()[0] in CHEAP or "--dry-run" in line or found[1].startswith("compare cells")):
            with pytest.raises(SystemExit) as ended:
                cli.main(shlex.split(found[1]))
            assert ended.value.code == 0, f"{line}\n{capsys.readouterr().err}"


@pytest.mark.parametrize("page", [page for page, text in PAGES.items() if blocks(text, "yaml")])
def test_configs_are_taken(page):
    """As `validate` takes them: with prompts enough."""
    for text in blocks(PAGES[page], "yaml"):
        data = yaml.safe_load(text)
        if "variants" in data:
            check_here(config_file.validate(data, source=page))


def test_what_local_vertex_is_tried_with_leaves_nothing_for_git_to_see():
    """A reader stands in a clone: the script, the config, the server's folder and the answer are in one that is ignored."""
    section = PAGES["getting-started.md"].partition("## 4. ")[2].partition("\n## ")[0]
    written = re.findall(r"Save it as `(\S+)`|on_this_machine\(\"(\S+)\"|folder=\"(\S+)\"|--out (\S+)", section)
    assert len(written) == 4
    assert {"".join(names).partition("/")[0] for names in written} == {"build"}
    assert "build/" in (ROOT / ".gitignore").read_text(encoding="utf-8").splitlines()


class NoServer:
    """Stands for Local Vertex where nothing but the config that goes with it is looked at."""

    environment: ClassVar[dict[str, str]] = {}

    def __init__(self, settings: Settings) -> None: ...
    def start(self) -> None: ...
    def stop(self) -> None: ...


def test_a_config_of_ones_own_becomes_one_for_local_vertex_by_the_lines_that_are_told(tmp_path, monkeypatch):
    page = PAGES["getting-started.md"]
    (own,) = (text for text in blocks(page, "yaml") if text.startswith("model:"))
    (tmp_path / "own.yaml").write_text(own)
    folder, engine = write_tokenizer(tmp_path / "model", SMOL), {"command": [sys.executable]}
    known = {"engines": {"default": engine, "*vllm*": engine}, "models": {yaml.safe_load(own)["model"]: str(folder)}}
    (tmp_path / "engines.yaml").write_text(yaml.safe_dump(known))
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(notebook, "LocalVertex", NoServer)
    notebook.example_on_this_machine("build/local.yaml", engines="engines.yaml", folder="build/local-vertex")
    for line in (line for block in blocks(page, "text") for line in block.splitlines() if line.startswith("grep ")):
        subprocess.run(line, shell=True, check=True)
    config = config_file.load(Path("build/own.yaml"), needs=ON_VERTEX_AI)
    assert config.project == "local-project"
    assert config.tokenizer == str(folder)
    preflight(config)


def test_files_of_engines_are_taken(tmp_path):
    found = [yaml.safe_load(text) for page in PAGES.values() for text in blocks(page, "yaml")]
    files = [data for data in found if "engines" in data]
    assert files
    for data in files:
        settings = Settings.model_validate({"state_dir": tmp_path, **data})
        argv = settings.engine_for("vllm-cpu").argv(model="/m", served_model="s", host="h", port=1, args=("--x",))
        assert argv[-2:] == ("1", "--x")
        assert settings.model_folder(next(iter(data["models"])))


def test_what_the_example_costs_is_what_plan_reckons():
    found = estimate(config_file.load(ROOT / "examples" / "llama4-scout.yaml"), Assumptions())
    assert (
        f"{found.run_h.hours_shown()} and ${found.run_cost.low:,.0f} to ${found.run_cost.high:,.0f}" in PAGES["cost.md"]
    )


def strings() -> str:
    """All text of the source, as one; the pieces of a literal that is broken over lines joined."""
    source = "\n".join(path.read_text(encoding="utf-8") for path in Path(eagle_bench.__file__).parent.rglob("*.py"))
    return re.sub(r'"\s*\n\s*f?"', "", source).replace("…", "")


def test_error_texts_of_troubleshooting_are_those_of_the_code():
    text = PAGES["troubleshooting.md"].split("## Ending")[0]
    quoted = [
        words for row in re.findall(r"^\| (`.*?) \|", text, re.MULTILINE) for words in re.findall(r"`([^`]+)`", row)
    ]
    assert len(quoted) > 20
    source = strings()
    missing = [words for words in quoted if words not in source and not words.isdigit()]
    assert missing == []


@pytest.mark.parametrize("page", PAGES)
def test_links_lead_somewhere(page):
    """As plain Markdown, too: the site's build checks the anchors."""
    for link in re.findall(r"\]\(([^)#:\s]+)(?:#[^)]*)?\)", PAGES[page]):
        assert ((DOCS / page).parent / link).exists(), link


def test_every_page_is_in_the_navigation():
    named = set(re.findall(r"[\w/-]+\.md", (ROOT / "mkdocs.yml").read_text()))
    assert named == set(PAGES)
