"""`eagle-bench validate`: are these files what they should be?"""

from __future__ import annotations

import json
from pathlib import Path

import click

from eagle_bench.commands.choices import Choice
from eagle_bench.errors import EagleBenchError, InputError
from eagle_bench.units import count

KINDS = ("config", "cell", "comparison")
YAML = {".yaml", ".yml"}


@click.command()
@click.argument("files", nargs=-1, type=click.Path(path_type=Path), metavar="[FILE]...")
@click.option("--schema", "schema_of", type=Choice(KINDS), help="Print the JSON Schema of such a file, and check none.")
def command(files: tuple[Path, ...], schema_of: str | None) -> None:
    """Check configs (YAML) and result files (JSON): what each is, or everything that is wrong with it.

    Of a config also that its prompts are enough, and its tokenizer is there, where both are on this machine. Exit status 2 when one of them can't be used.
    """
    if bool(files) == bool(schema_of):
        raise click.UsageError("Give files, or --schema.")
    if schema_of:
        from eagle_bench.schemas import schema

        click.echo(json.dumps(schema(schema_of), indent=1, ensure_ascii=False))
        return
    wrong = []
    for file in files:
        try:
            click.echo(f"{file}: {_kind(file)}")
        except EagleBenchError as error:
            wrong.append(str(error))
    if wrong:
        raise InputError("\n".join(wrong))


def _kind(file: Path) -> str:
    """What a file is, in words.

    Raises:
        InputError: it is none of these, or not a valid one.
    """
    from eagle_bench import config_file
    from eagle_bench.adapters import result_files

    if file.suffix.lower() in YAML:
        from eagle_bench.tasks.stage_data import check_here

        config = config_file.load(file)
        try:
            check_here(config)
        except InputError as error:
            raise InputError(f"{file}: {error.message}", hint=error.hint) from None
        return f"a config of {count(len(config.variants), 'variant')} at {count(len(config.concurrency), 'level')}"
    try:
        cells = result_files.read_cells([file])
    except InputError as not_a_cell:
        try:
            comparison = result_files.read_comparison(file)
        except InputError as error:
            raise error if '"comparisons"' in _beginning(file) else not_a_cell from None
        return (
            f"a comparison of {count(len(comparison.variants), 'variant')} at {count(len(comparison.levels), 'level')}"
        )
    return ", ".join(f"a cell of {cell.variant} at concurrency {cell.concurrency}" for cell in cells)


def _beginning(file: Path) -> str:
    return file.read_text(encoding="utf-8", errors="replace") if file.is_file() else ""
