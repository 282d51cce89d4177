"""What must not stand in a config: it goes into the pipeline's parameters, and the console shows those."""

from __future__ import annotations

import re
from typing import Annotated
from urllib.parse import urlsplit

from pydantic import AfterValidator, Field

SECRET_NAME = r"^projects/[^/\s]+/secrets/[A-Za-z0-9_-]+/versions/(latest|\d+)$"
SecretName = Annotated[str, Field(pattern=SECRET_NAME, description="Secret Manager resource name, never the secret")]
SECRET_WORDS = r"token|secret|password|passwd|credentials?|api[-_]?key|access[-_]?key"
ENV_NAME = re.compile(r"[A-Za-z_][A-Za-z0-9_]*")


def _without_credentials(address: str) -> str:
    """Refuse a user name or password in a URL."""
    try:
        parts = urlsplit(address)
        port = parts.port
    except ValueError:
        raise ValueError("is not a URL: its host or port can't be read") from None
    if parts.username or parts.password:
        raise ValueError("carries a user name or password; give a secret by its Secret Manager name")
    if port == 0:
        raise ValueError("is not a URL: its host or port can't be read")
    return address


def _known_source(address: str) -> str:
    scheme, separator, _ = address.partition("://")
    if not separator:
        return address
    if scheme not in {"gs", "http", "https", "hf"}:
        raise ValueError("names a scheme that can't be read; gs://, https:// and hf:// can")
    return _without_credentials(address)


def is_secret(name: str) -> bool:
    """Whether the name of an environment variable says that its value is a secret."""
    return re.search(rf"(^|_)({SECRET_WORDS})$", name, re.IGNORECASE) is not None


def _no_secrets_in_env(env: dict[str, str]) -> dict[str, str]:
    for name in env:
        if not ENV_NAME.fullmatch(name):
            raise ValueError("has a name that is no variable's: letters, digits and _ only")
        if is_secret(name):
            raise ValueError(
                f"{name} would show in the console: use `hf_token_secret`, or a secret of the serving image"
            )
    return env


def _no_secrets_in_args(args: tuple[str, ...]) -> tuple[str, ...]:
    for arg in args:
        flag = arg.split("=", 1)[0]
        if re.fullmatch(rf"--?([\w-]*[-_])?({SECRET_WORDS})", flag, re.IGNORECASE):
            raise ValueError(f"{flag} would show in the console: nothing secret may stand in arguments")
    return args


Url = Annotated[str, AfterValidator(_without_credentials)]
Source = Annotated[str, AfterValidator(_known_source)]
Env = Annotated[dict[str, str], AfterValidator(_no_secrets_in_env)]
Args = Annotated[tuple[str, ...], AfterValidator(_no_secrets_in_args)]
