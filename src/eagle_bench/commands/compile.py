"""`eagle-bench compile`: the pipeline template."""

from __future__ import annotations

from pathlib import Path

import click


@click.command()
@click.option(
    "-o",
    "--output",
    type=click.Path(dir_okay=False, path_type=Path),
    default=Path("eagle-benchmark.yaml"),
    show_default=True,
    help="File to write.",
)
@click.option("--image", help="Address of the image that the components run in; best with its digest.")
def command(output: Path, image: str | None) -> None:
    """Write the pipeline as one YAML file: the template for Vertex AI Pipelines and for this machine."""
    from eagle_bench.adapters.pipeline_template import compile_template

    digest = compile_template(output, image=image)
    click.echo(f"{output} (sha256:{digest})")
