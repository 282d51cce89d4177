"""Errors at the terminal: one message, the exit status of its kind, a traceback only when asked for."""

from __future__ import annotations

import sys
import types

import click
import pytest

from eagle_bench import cli
from eagle_bench.errors import EagleBenchError, GateFailed, InputError, NoUsableResult, ServiceError


@pytest.fixture
def failing(monkeypatch):
    """Put a command into the command line that raises an error."""

    def install(error):
        @click.command()
        def command():
            raise error

        module = types.ModuleType("eagle_bench.commands.fail")
        module.command = command
        monkeypatch.setitem(sys.modules, "eagle_bench.commands.fail", module)
        monkeypatch.setitem(cli.COMMANDS, "fail", "Fails.")

    return install


def status_of(arguments):
    with pytest.raises(SystemExit) as caught:
        cli.main(arguments)
    return caught.value.code


@pytest.mark.parametrize(
    ("error", "status"),
    [
        (EagleBenchError("it broke."), 1),
        (InputError("`x` is wrong.", hint="Give y."), 2),
        (GateFailed("too slow."), 3),
        (NoUsableResult("nothing."), 4),
        (ServiceError("refused.", kind="quota", hint="Ask for more."), 1),
        (ZeroDivisionError("division by zero"), 1),
        (KeyboardInterrupt(), 130),
        (KeyboardInterrupt("SIGTERM"), 143),
        (KeyboardInterrupt("SIGHUP"), 129),
    ],
)
def test_each_kind_of_error_has_its_exit_status(failing, capsys, error, status):
    failing(error)
    assert status_of(["fail"]) == status
    said = capsys.readouterr().err
    assert said.strip().startswith("eagle-bench: ")
    assert "Traceback" not in said
    for part in (getattr(error, "message", ""), getattr(error, "hint", None) or ""):
        assert part in said


def test_each_line_of_an_error_begins_alike(failing, capsys):
    failing(InputError("a.yaml: `x` is wrong.\n\na.yaml: `y` is wrong."))
    assert status_of(["fail"]) == 2
    assert capsys.readouterr().err == "eagle-bench: a.yaml: `x` is wrong.\neagle-bench: a.yaml: `y` is wrong.\n"


@pytest.mark.parametrize("arguments", [["--debug", "fail"], ["fail", "--debug"]])
def test_debug_shows_the_traceback(failing, capsys, arguments):
    failing(InputError("`x` is wrong."))
    assert status_of(arguments) == 2
    assert "Traceback" in capsys.readouterr().err


@pytest.mark.parametrize("arguments", [["nonsense"], ["compile", "--nonsense"], ["bench"], ["submit"]])
def test_wrong_usage_is_the_users_input(capsys, arguments):
    assert status_of(arguments) == 2
    assert "Error" in capsys.readouterr().err


def test_a_mistyped_command_or_option_is_recognised(capsys):
    assert status_of(["submitt"]) == 2
    assert "Did you mean `submit`?" in capsys.readouterr().err
    assert status_of(["submit", "--dryrun"]) == 2
    assert "--dry-run" in capsys.readouterr().err


@pytest.mark.parametrize(
    ("arguments", "meant"),
    [
        (["validate", "--schema", "cel"], "cell"),
        (["init", "--engine", "vlm"], "vllm"),
        (["submit", "bench.yaml", "--failure-policy", "slwo"], "slow"),
        (["completion", "bsh"], "bash"),
        (["compile", "--image", "benc=a", "-o", "none.yaml"], "bench"),
    ],
)
def test_a_mistyped_value_of_few_is_recognised(capsys, arguments, meant):
    assert status_of(arguments) == 2
    assert f"Did you mean `{meant}`?" in capsys.readouterr().err


def test_a_missing_config_is_named(capsys, tmp_path):
    missing = tmp_path / "missing.yaml"
    for command in ("run", "submit"):
        assert status_of([command, str(missing)]) == 2
        assert f"{missing}: there is no such file" in capsys.readouterr().err


def test_every_command_has_help(capsys):
    for name in cli.COMMANDS:
        assert status_of([name, "--help"]) == 0
        assert "Usage: eagle-bench" in capsys.readouterr().out
