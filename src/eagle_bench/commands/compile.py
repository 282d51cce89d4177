"""`eagle-bench compile`: the pipeline template."""

from __future__ import annotations

from pathlib import Path

import click

from eagle_bench import __version__


@click.command()
@click.option(
    "-o",
    "--output",
    type=click.Path(dir_okay=False, path_type=Path),
    default=Path("eagle-benchmark.yaml"),
    show_default=True,
    help="File to write.",
)
@click.option(
    "--image",
    "images",
    multiple=True,
    metavar="[NAME=]ADDRESS",
    help="Address of the image `bench` or `slim`, best with its digest; without NAME, for all components.",
)
@click.option("--open-source", is_flag=True, help="For Kubeflow Pipelines outside of Vertex AI: measures URLs only.")
@click.option(
    "--upload",
    "repository",
    metavar="REPOSITORY",
    help="Put it into Artifact Registry too: https://LOCATION-kfp.pkg.dev/PROJECT/REPOSITORY.",
)
@click.option("--tag", "tags", multiple=True, help="Tag of the uploaded template beside its version; may be repeated.")
def command(
    output: Path, images: tuple[str, ...], open_source: bool, repository: str | None, tags: tuple[str, ...]
) -> None:
    """Write the pipeline as one YAML file: the template for Vertex AI Pipelines and for this machine."""
    from eagle_bench.adapters import artifact_registry
    from eagle_bench.adapters.pipeline_template import compile_template, images_of

    if tags and repository is None:
        raise click.UsageError("--tag is for a template that is uploaded: add --upload.")
    names = (f"v{__version__.replace('.', '-')}", *tags)
    if repository is not None:
        artifact_registry.upload_place(repository, names)  # what is wrong is told before anything is written
    digest = compile_template(output, images=images_of(images), open_source=open_source)
    click.echo(f"{output} (sha256:{digest})")
    if repository is not None:
        address = artifact_registry.upload_template(output, repository, names)
        click.echo(f"uploaded {address} ({', '.join(names)})")
