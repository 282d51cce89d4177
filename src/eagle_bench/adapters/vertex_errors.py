"""What Vertex AI's refusals mean, and what to do about each."""

from __future__ import annotations

import re
from collections.abc import Iterator
from contextlib import contextmanager

from eagle_bench.errors import ServiceError, because

HINTS = {
    "authentication": "Sign in (`gcloud auth application-default login`), or set GOOGLE_APPLICATION_CREDENTIALS to "
    "a key file that is valid.",
    "permission": "Grant the account roles/aiplatform.user on the project, or ask for it.",
    "quota": "Ask for more of the quota that is named (console: IAM & Admin > Quotas), take another region, or wait "
    "until machines are free.",
    "eula": "Accept the model's licence on its Model Garden page, then set `serving.accept_eula: true`.",
    "gated-model": "Accept the model's conditions on its Hugging Face page with the account of the token, and set "
    "`hf_token_secret`.",
    "image": "Check `serving.image`: that it exists, and that Vertex AI's service agent may read it "
    "(roles/artifactregistry.reader).",
    "region": "Take a region that has the machine: `location` names it.",
    "not-found": "Check the name and the region.",
    "timeout": "Nothing is wrong for sure: look at the endpoint's logs, or allow more time.",
    "unavailable": "This often passes: try again in a few minutes.",
}

# What a refusal says was missing → the least role that has it.
ROLES = (
    ("iam.serviceAccounts.actAs", "roles/iam.serviceAccountUser on the service account of the run"),
    ("artifactregistry.", "roles/artifactregistry.reader on the repository"),
    ("secretmanager.", "roles/secretmanager.secretAccessor on the secret"),
    ("storage.", "roles/storage.objectUser on the bucket"),
)

POOL = re.compile(r"HTTPS?Connection(?:Pool)?\(host='?([^',)]+)'?, port=(\d+)\)")

MESSAGES = (
    ("gated-model", r"gated|hugging ?face .*(access|token|denied|401|403)"),
    ("eula", r"\beula\b|licen[cs]e agreement"),
    ("quota", r"quota|resource.?exhausted|out of (capacity|resources)|insufficient capacity|stockout"),
    (
        "region",
        r"(machine|accelerator|location|region)\b.{0,80}\b(not|un)\s?(supported|available|offered)|"
        r"unsupported (machine|accelerator|location|region)",
    ),
    ("image", r"container image|pull.{0,40}image|image.{0,60}(not found|does not exist|denied)|manifest unknown"),
)

CODES = {
    400: "other",
    401: "authentication",
    403: "permission",
    404: "not-found",
    409: "other",
    429: "quota",
    499: "cancelled",
    503: "unavailable",
    504: "timeout",
}


def kind_of(code: int | None, message: str) -> str:
    """The word for a cause: by what the message says, then by the HTTP status."""
    if code not in {401, 404, 499, 503, 504}:
        for kind, pattern in MESSAGES:
            if re.search(pattern, message, re.IGNORECASE):
                return kind
    return CODES.get(code or 0, "other")


def service_error(doing: str, error: Exception) -> ServiceError:
    """One sentence about an exception of Google's libraries: what was asked, what it answered, what to do."""
    import google.auth.exceptions

    code: int | None = getattr(error, "code", None)
    message = str(getattr(error, "message", None) or error)
    if isinstance(error, google.auth.exceptions.DefaultCredentialsError):
        said = str(error.args[0] if error.args else "")
        why = "" if "default credentials were not found" in said else said
        return ServiceError(
            because("No Google credentials were found on this machine", why),
            kind="authentication",
            hint=HINTS["authentication"],
        )
    if isinstance(error, google.auth.exceptions.TransportError):  # on the way to a token
        kind, message = "unavailable", str(error.args[0] if error.args else error)
        if POOL.search(message):
            return _unreachable(doing, message)
    elif isinstance(error, google.auth.exceptions.GoogleAuthError):
        kind, message = "authentication", str(error.args[0] if error.args else error)
    elif isinstance(error, OSError):
        return _unreachable(doing, message)
    else:
        kind = kind_of(int(code) if code else None, message)
    return ServiceError(because(f"Vertex AI refused to {doing}", message), kind=kind, hint=_hint(kind, message))


def _unreachable(doing: str, message: str) -> ServiceError:
    where = ""
    if pool := POOL.search(message):
        where, message = f" ({pool[1]}:{pool[2]})", _lost(message)
    return ServiceError(
        because(f"Vertex AI{where} can't be reached to {doing}", message),
        kind="unavailable",
        hint="Check the network, and the region's name.",
    )


def _lost(message: str) -> str:
    """Why a connection was lost, in the last words of nested exceptions: they repeat the URL, with its query."""
    if found := re.findall(r"\[Errno -?\d+\] ([^'\")\]]+)", message):
        return str(found[-1])
    cause = re.sub(r".*Caused by \w+\(|\(read timeout.*", "", message)
    return cause.rpartition(": ")[2].strip(" '\"().")


def _hint(kind: str, message: str) -> str | None:
    if kind == "permission":
        for permission, role in ROLES:
            if permission in message:
                return f"Grant the account {role}."
    return HINTS.get(kind)


@contextmanager
def told(doing: str) -> Iterator[None]:
    """Turn exceptions of Google's libraries in the block into a `ServiceError` that says what was being done."""
    import google.api_core.exceptions
    import google.auth.exceptions

    try:
        yield
    except (
        google.api_core.exceptions.GoogleAPIError,
        google.auth.exceptions.GoogleAuthError,
        OSError,  # lost connections of the REST transport
    ) as error:
        raise service_error(doing, error) from error
