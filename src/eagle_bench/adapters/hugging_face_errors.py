"""What the refusals of the Hugging Face hub mean, and what to do about each."""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Literal

from eagle_bench.errors import InputError, ServiceError, because

Kind = Literal["model", "dataset"]
HOME = "https://huggingface.co"
TO_BE_SET = "set `hf_token_secret` (or HF_TOKEN in the environment) to a token of an account with access"


def endpoint() -> str | None:
    """The hub that HF_ENDPOINT names; None for the public one."""
    return os.environ.get("HF_ENDPOINT", "").rstrip("/") or None


@contextmanager
def told(kind: Kind, name: str, token: str | None, file: str | None = None) -> Iterator[None]:
    """Say what the hub's exceptions mean: gated, not found, a bad token, no network."""
    from huggingface_hub import errors, get_token

    what = f"the {'data set' if kind == 'dataset' else 'model'} {name}"
    page = f"{endpoint() or HOME}/{'datasets/' if kind == 'dataset' else ''}{name}"
    has_token = bool(token or get_token())
    try:
        yield
    except errors.GatedRepoError as error:
        known = "the token's account has no access" if has_token else "no token was given"
        token_step = "with the token's account" if has_token else f"and {TO_BE_SET}"
        raise ServiceError(
            f"Hugging Face: {what} is gated, and {known}.",
            kind="gated-model",
            hint=f"Accept its conditions at {page} {token_step}; or give the files as a gs:// folder or a local one.",
        ) from error
    except errors.RevisionNotFoundError as error:
        raise ServiceError(
            f"Hugging Face: {what} has no such revision.", kind="not-found", hint=f"See {page}."
        ) from error
    except errors.RepositoryNotFoundError as error:
        hint = "Check the spelling; where it is private, the token's account needs access."
        if not has_token:
            hint = f"Check the spelling; where it is private, {TO_BE_SET}."
        raise ServiceError(
            f"Hugging Face: there is no {what[4:]}, or it is private.", kind="not-found", hint=hint
        ) from error
    except errors.EntryNotFoundError as error:
        if isinstance(error, errors.LocalEntryNotFoundError):
            raise _unreachable(what, error.__cause__ or error) from error
        raise ServiceError(
            f"Hugging Face: {what} has no file {file}.", kind="not-found", hint=f"See {page}."
        ) from error
    except errors.HFValidationError as error:
        raise InputError(f"{name!r} is not a name on Hugging Face: {error}.") from error
    except errors.HfHubHTTPError as error:
        raise _refused(error.response.status_code, error.server_message, what, error, has_token=has_token) from error
    except (ValueError, KeyError, TypeError) as error:  # an answer of 200 that the hub's library can't take apart
        raise _not_the_hub(what, error) from error
    except Exception as error:
        if not _is_network(error):
            raise
        raise _unreachable(what, error) from error


def _refused(status: int, words: str | None, what: str, error: Exception, *, has_token: bool) -> ServiceError:
    if status == 401:
        return ServiceError(
            f"Hugging Face refuses the token (401) for {what}.",
            kind="authentication",
            hint="Make a new one in the account's settings, and put it where the old one is.",
        )
    if status == 403:
        fine_grained = "A fine-grained token needs the right to read gated repositories it has access to."
        return ServiceError(
            because(f"Hugging Face: {what} may not be read (403)", words or ""),
            kind="permission",
            hint=fine_grained if has_token else f"If it needs a token, {TO_BE_SET}.",
        )
    return _unreachable(what, error)


def _not_the_hub(what: str, error: Exception) -> ServiceError:
    """Of the library's errors about an answer; some of them only wrap what happened on the network."""
    if error.__cause__ is not None and _is_network(error.__cause__):
        return _unreachable(what, error.__cause__)
    why = f"{type(error).__name__}: {error}"
    return ServiceError(
        because(f"What answered in place of Hugging Face ({endpoint() or HOME}) for {what} is no hub", why),
        kind="unavailable",
        hint="Check HF_ENDPOINT; a proxy on the way may answer with a page of its own.",
    )


def _is_network(error: BaseException) -> bool:
    """Whether the hub couldn't be reached: errors of sockets, and of the HTTP client that the hub's library uses."""
    import httpx2

    return isinstance(error, (OSError, httpx2.HTTPError))


def _unreachable(what: str, error: BaseException) -> ServiceError:
    said = (str(error) or type(error).__name__).strip().splitlines()[0]
    return ServiceError(
        because(f"Hugging Face ({endpoint() or HOME}) can't be reached for {what}", said),
        kind="unavailable",
        hint="Check the network and HF_ENDPOINT; or give the files as a gs:// folder or a local one.",
    )
