"""`eagle-bench completion`: what a shell needs to complete commands, options and files."""

from __future__ import annotations

import click
from click.shell_completion import get_completion_class

from eagle_bench.commands.choices import Choice

SHELLS = {
    "bash": 'eval "$(eagle-bench completion bash)"    in ~/.bashrc',
    "zsh": 'eval "$(eagle-bench completion zsh)"    in ~/.zshrc',
    "fish": "eagle-bench completion fish | source    in ~/.config/fish/config.fish",
}
VARIABLE = "_EAGLE_BENCH_COMPLETE"  # the name that click derives from the program's


@click.command(epilog="\b\n" + "\n".join(SHELLS.values()))
@click.argument("shell", type=Choice(list(SHELLS)))
def command(shell: str) -> None:
    """Print the script that makes a shell complete commands, options and files.

    Put the line for your shell into its start-up file.
    """
    from eagle_bench.cli import group

    script = get_completion_class(shell)
    assert script is not None
    click.echo(script(group, {}, "eagle-bench", VARIABLE).source())
