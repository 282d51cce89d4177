"""What the refusals of Artifact Registry mean, with the repository, the region and the role that they are about."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass

from eagle_bench.errors import EagleBenchError, ServiceError, because


@dataclass(frozen=True)
class Repository:
    """A repository of Artifact Registry, as its messages name it."""

    kind: str  # "kfp" or "docker", as gcloud calls the format
    location: str
    project: str
    name: str

    def __str__(self) -> str:
        return f"the repository {self.name} in region {self.location} of project {self.project}"

    @property
    def command(self) -> str:
        """What makes it."""
        return (
            f"gcloud artifacts repositories create {self.name} --repository-format={self.kind} "
            f"--location={self.location} --project={self.project}"
        )


@contextmanager
def as_agreed(doing: str) -> Iterator[None]:
    """Name an answer of 200 that is not the registry's, which Google's clients read as if it were."""
    try:
        yield
    except (ValueError, KeyError, TypeError) as error:
        raise ServiceError(
            f"What answered in place of Artifact Registry did not {doing}: {type(error).__name__}: {str(error)[:100]}.",
            kind="unavailable",
            hint="A proxy on the way may answer with a page of its own: check the network.",
        ) from error


@contextmanager
def told(there: Repository, doing: str, *, role: str, what: str = "repository") -> Iterator[None]:
    """Say what the clients' exceptions mean here, with the repository, the region and the role."""
    import google.auth.exceptions
    import requests

    try:
        yield
    except EagleBenchError:
        raise
    except google.auth.exceptions.GoogleAuthError as error:
        raise refused(401, str(error), there, doing, role, what) from error
    except requests.HTTPError as error:
        answer = error.response
        raise refused(answer.status_code, _words(answer.text), there, doing, role, what) from error
    except OSError as error:  # no connection, and urllib's HTTPError with which aiplatform reads templates
        code = getattr(error, "code", None)
        if isinstance(code, int):
            raise refused(code, _words(error.read().decode(errors="replace")), there, doing, role, what) from error  # type: ignore[attr-defined]
        raise ServiceError(
            because(f"Artifact Registry can't be reached to {doing}", error),
            kind="unavailable",
            hint=f"Check the network, and that {there.location} is a region.",
        ) from error


def refused(code: int, words: str, there: Repository, doing: str, role: str, what: str) -> ServiceError:
    if code == 401:
        return ServiceError(
            because(f"Artifact Registry takes no credentials to {doing}", words),
            kind="authentication",
            hint="Sign in: gcloud auth application-default login.",
        )
    if code == 403:
        return ServiceError(
            because(f"Artifact Registry does not let this account {doing}", words),
            kind="permission",
            hint=f"Grant it {role} on {there.name}, or check that it exists in {there.location}: `{there.command}`.",
        )
    if code == 404:
        repository_missing = what == "repository" or re.search(r"repository", words, re.IGNORECASE)
        missing = f"{there} is not there" if repository_missing else f"the {what} is not there"
        hint = (
            f"Check the region, or make it: `{there.command}`."
            if repository_missing
            else f"Check its name and tag in {there}."
        )
        return ServiceError(because(f"Artifact Registry can't {doing}: {missing}", words), kind="not-found", hint=hint)
    return ServiceError(because(f"Artifact Registry refused to {doing} ({code})", words))


def _words(body: str) -> str:
    """What a refusal says, in whichever of the registries' forms."""
    try:
        data = json.loads(body)
    except ValueError:
        return " ".join(re.sub(r"<[^>]+>", " ", body).split())[:300]
    errors = data.get("errors") if isinstance(data, dict) else None
    if isinstance(errors, list) and errors and isinstance(errors[0], dict):
        return str(errors[0].get("message", ""))[:300]
    error = data.get("error") if isinstance(data, dict) else None
    return str(error.get("message", "") if isinstance(error, dict) else data)[:300]
