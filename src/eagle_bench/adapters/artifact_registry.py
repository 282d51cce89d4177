"""Artifact Registry: templates of pipelines put there and found again, images looked up before a job names them."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from eagle_bench.adapters.artifact_registry_errors import Repository, as_agreed, refused, told
from eagle_bench.adapters.vertex_address import credentials
from eagle_bench.errors import InputError

TIMEOUT_S = 60.0
REPOSITORY = re.compile(r"https://(?P<location>[a-z0-9-]+)-kfp\.pkg\.dev/(?P<project>[^/\s]+)/(?P<name>[a-z0-9-]+)/?")
TEMPLATE = re.compile(rf"{REPOSITORY.pattern.removesuffix('/?')}/(?P<package>[^/\s]+)/(?P<version>[^/\s]+)")
VERSION = re.compile(r"sha256:[0-9a-f]{64}")
TAG = re.compile(r"[a-z0-9]([a-z0-9._-]{0,126}[a-z0-9])?")
IMAGE = re.compile(
    r"(?P<host>(?P<location>[a-z0-9-]+)-docker\.pkg\.dev)/(?P<project>[^/\s]+)/(?P<name>[^/\s@:]+)/(?P<image>[^\s@:]+)"
    r"(:(?P<tag>[\w.-]+))?(@(?P<digest>sha256:[0-9a-f]{64}))?"
)
UPLOAD = "artifactregistry.repositories.uploadArtifacts"
UNPUBLISHED = re.compile(r"eagle-bench/[a-z]+(:[\w.-]+)?")
MANIFESTS = (
    "application/vnd.docker.distribution.manifest.v2+json, application/vnd.docker.distribution.manifest.list.v2+json, "
    "application/vnd.oci.image.manifest.v1+json, application/vnd.oci.image.index.v1+json"
)


def upload_template(template: Path, repository: str, tags: Iterable[str]) -> str:
    """Put a compiled pipeline into a repository, and give the address of the version that it became.

    Args:
        repository: https://LOCATION-kfp.pkg.dev/PROJECT/REPOSITORY.
        tags: names that lead to this version from now on.

    Raises:
        InputError: the address or a tag can't be one.
        ServiceError: Artifact Registry refused it; repository and role are named.
    """
    tags = tuple(tags)
    there = upload_place(repository, tags)
    explained = told(there, f"put the template into {there}", role="roles/artifactregistry.writer")
    with explained, as_agreed("put the template"):
        package, version = _templates(repository).upload_pipeline(str(template), tags=list(tags))
        if not VERSION.fullmatch(version):
            raise ValueError(f"{package}/{version}")
    return f"{repository.rstrip('/')}/{package}/{version}"


def upload_place(repository: str, tags: Iterable[str]) -> Repository:
    """The repository that a template is put into, once it and the tags can be used.

    Raises:
        InputError: the address is no repository's, or a tag can't be one.
    """
    there = template_repository(repository)
    if not REPOSITORY.fullmatch(repository):
        raise InputError(
            f"{repository[:120]}: names a template. It goes into a repository, and gets its own name there.",
            hint=f"Give https://{there.location}-kfp.pkg.dev/{there.project}/{there.name}, and its tag with --tag.",
        )
    for tag in tags:
        if not TAG.fullmatch(tag):
            raise InputError(f"--tag {tag[:60]!r}: a tag is made of a-z, 0-9, '.', '_' and '-', 128 at most.")
    return there


def check_upload(address: str) -> Repository | None:
    """Make sure that this account may put images, or templates, into the repository of an address; nothing is made.

    Args:
        address: https://LOCATION-kfp.pkg.dev/PROJECT/REPOSITORY, or LOCATION-docker.pkg.dev/PROJECT/REPOSITORY.

    Returns:
        The repository; None for images that go to another registry, which can't be asked.

    Raises:
        ServiceError: it is not there, or the account may not; repository and role are named.
    """
    from google.auth.transport.requests import AuthorizedSession

    if address.startswith("https://"):
        there = template_repository(address)
    elif found := IMAGE.fullmatch(f"{address.rstrip('/')}/image"):
        there = Repository("docker", found["location"], found["project"], found["name"])
    else:
        return None
    doing, role = f"put anything into {there}", "roles/artifactregistry.writer"
    resource = f"projects/{there.project}/locations/{there.location}/repositories/{there.name}"
    with told(there, doing, role=role), as_agreed("say what this account may do"):
        answer = AuthorizedSession(credentials()).post(
            f"https://artifactregistry.googleapis.com/v1/{resource}:testIamPermissions",
            json={"permissions": [UPLOAD]},
            timeout=TIMEOUT_S,
        )
        answer.raise_for_status()
        if UPLOAD not in answer.json().get("permissions", []):
            raise refused(403, f"it lacks {UPLOAD}", there, doing, role, "repository")
    return there


def template_repository(address: str) -> Repository:
    """The repository of a template's, or of a repository's own address.

    Raises:
        InputError: it is neither.
    """
    found = REPOSITORY.fullmatch(address) or TEMPLATE.fullmatch(address)
    if not found:
        raise InputError(
            f"{address[:120]!r} is no address in Artifact Registry.",
            hint="Allowed: https://LOCATION-kfp.pkg.dev/PROJECT/REPOSITORY, followed by /PACKAGE/TAG for a template.",
        )
    return Repository("kfp", found["location"], found["project"], found["name"])


def pinned_template(address: str) -> str:
    """The address of the version that a tag leads to now: a job names what it really ran.

    Raises:
        InputError: it is no template's address.
        ServiceError: there is none, or it may not be read; repository and role are named.
    """
    template_repository(address)
    found = TEMPLATE.fullmatch(address)
    if not found:
        raise InputError(f"{address}: names a repository, no template in it: add /PACKAGE/TAG.")
    if found["version"].startswith("sha256:"):
        return address
    with reading_template(address), as_agreed("look up the tag"):
        tag = _templates(address.removesuffix(f"/{found['package']}/{found['version']}")).get_tag(
            found["package"], found["version"]
        )
        version = str(tag["version"]).rsplit("/", 1)[-1]
    return f"{address.removesuffix(found['version'])}{version}"


@contextmanager
def reading_template(address: str) -> Iterator[None]:
    """Say what it means when a template can't be read, whoever reads it in the block."""
    there = template_repository(address)
    with told(there, f"read the template {address}", role="roles/artifactregistry.reader", what="template"):
        yield


def check_images(images: Iterable[str]) -> tuple[str, ...]:
    """Make sure that images are there, as far as this account can see; those that can't be looked up are given back.

    Raises:
        InputError: an image stands in no registry, or its address in Artifact Registry is incomplete.
        ServiceError: one is missing, or may not be read; repository and role are named.
    """
    unknown = []
    for image in sorted(images):
        if UNPUBLISHED.fullmatch(image):
            name = image.removeprefix("eagle-bench/").partition(":")[0]
            raise InputError(
                f"the template names {image}, which is in no registry.",
                hint=f"Build it (docs/cloud-build.md) and give --image {name}=ADDRESS, best with its digest.",
            )
        found = IMAGE.fullmatch(image)
        if found:
            _check_image(image, found)
        elif image.partition("/")[0].endswith("-docker.pkg.dev"):
            raise InputError(
                f"the image {image[:120]!r} is at no address that Artifact Registry has.",
                hint="It is LOCATION-docker.pkg.dev/PROJECT/REPOSITORY/IMAGE, and :TAG, @sha256:DIGEST or both.",
            )
        else:
            unknown.append(image)
    return tuple(unknown)


def _check_image(image: str, found: re.Match[str]) -> None:
    from google.auth.transport.requests import AuthorizedSession

    there = Repository("docker", found["location"], found["project"], found["name"])
    reference = found["digest"] or found["tag"] or "latest"
    path = f"{found['project']}/{found['name']}/{found['image']}"
    with told(there, f"find the image {image}", role="roles/artifactregistry.reader", what="image"):
        session = AuthorizedSession(credentials())
        url = f"https://{found['host']}/v2/{path}/manifests/{reference}"
        session.get(url, headers={"Accept": MANIFESTS}, timeout=TIMEOUT_S).raise_for_status()


def _templates(repository: str) -> Any:
    """Google's client for a repository of templates."""
    from kfp.registry import RegistryClient

    return RegistryClient(host=repository.rstrip("/"), auth=credentials())
