"""Checks of a plan: the images that serve and measure are there, and the template is of this package's version."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

from eagle_bench import __version__
from eagle_bench.adapters.artifact_registry import check_images
from eagle_bench.adapters.pipeline_template import images_in, images_of
from eagle_bench.adapters.template_version import fetch_template, read_template, unlike_package
from eagle_bench.adapters.vertex_address import on_this_machine
from eagle_bench.config import Config
from eagle_bench.planning.cloud_checks import answered
from eagle_bench.planning.quick_checks import require_image
from eagle_bench.run_plan import Check
from eagle_bench.variants import resolve


def image_checks(config: Config, *, template: str | None, images: Sequence[str]) -> Iterator[Check]:
    """What `submit --template` or `--image` would use.

    Args:
        template: a compiled file, or its https:// address in Artifact Registry; None where it is compiled when submitted.
        images: as `--image` takes them.
    """
    yield answered("serving-image", lambda: _serving_images(config))
    if template is None:
        yield answered("component-images", lambda: _named(images))
        yield Check(name="template", status="ok", text=f"it is compiled by this package, version {__version__}.")
        return
    read: dict[str, Any] = {}
    yield answered("template", lambda: _template(template, read))
    if read:
        yield answered("component-images", lambda: _looked_for("component-images", images_in(read)))
    else:
        yield Check(name="component-images", status="not checked", text="the template that names them can't be read.")


def _serving_images(config: Config) -> Check | str:
    require_image(config)
    named = {spec.serving.image for spec in resolve(config) if spec.serving}
    if not named:
        return "nothing is deployed."
    images = [image for image in named if image is not None]
    return _looked_for("serving-image", images) if images else "Model Garden's own choice."


def _named(images: Sequence[str]) -> Check | str:
    if not images:
        hint = "Give `--image` to `plan` and `submit`: an address that your project can pull from."
        return Check(name="component-images", status="not checked", text="no image is named.", hint=hint)
    return _looked_for("component-images", set(images_of(images).values()))


def _looked_for(name: str, images: Sequence[str] | set[str] | frozenset[str]) -> Check | str:
    if on_this_machine():
        return Check(name=name, status="not checked", text="this machine stands for the images.")
    unknown = check_images(images)
    if unknown:
        text = f"{', '.join(unknown)}: not looked for, its registry is not Artifact Registry."
        return Check(name=name, status="not checked", text=text)
    return f"{', '.join(sorted(images))} {'is' if len(images) == 1 else 'are'} there."


def _template(template: str, read: dict[str, Any]) -> Check | str:
    found = fetch_template(template) if "://" in template else read_template(Path(template))
    read.update(found)
    unlike = unlike_package(found)
    if unlike:
        text = f"{template} is of another version than this package ({__version__}): {', '.join(unlike)} differ."
        hint = "Compile it with this version (`eagle-bench compile`), or use the version that it was compiled with."
        return Check(name="template", status="refused", text=text, hint=hint)
    return f"{template} is what this package, version {__version__}, compiles."
