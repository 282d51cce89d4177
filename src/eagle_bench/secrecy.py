"""Secrets: what must not stand in a config, which the console shows, and how a text is rid of one."""

from __future__ import annotations

import re
from functools import lru_cache
from typing import Annotated
from urllib.parse import parse_qsl, urlsplit

from pydantic import AfterValidator, Field

SECRET_NAME = r"^projects/[^/\s]+/secrets/[A-Za-z0-9_-]+/versions/(latest|\d+)$"
SecretName = Annotated[str, Field(pattern=SECRET_NAME, description="Secret Manager resource name, never the secret")]
SECRET_WORDS = r"token|secret|password|passwd|credentials?|api[-_]?key|access[-_]?key"
IN_A_QUERY = re.compile(rf"(^|[-_.])(sig|key|auth|authorization)$|(signature|{SECRET_WORDS})$", re.IGNORECASE)
ENV_NAME = re.compile(r"[A-Za-z_][A-Za-z0-9_]*")
CHAT_PATH = "/chat/completions"
FULL_URL = "ends in /chat/completions: give the URL up to /v1"
HIDDEN = "[token]"
LEAST_SECRET = 8
"""Characters; shorter keys (`EMPTY`) are words that an answer may hold by itself, and pieces that prove nothing."""


def hide(text: str, secret: str | None) -> str:
    """Put `[token]` in the place of a secret, as it is or escaped for JSON or a URL, and of its beginning at the end.

    To be done before a text is cut: of a piece nobody can tell what it was, but where the text ends in it.
    """
    if not secret:
        return text
    text = _spellings(secret).sub(HIDDEN, text)
    if text[-LEAST_SECRET:] not in secret:
        return text
    for length in range(min(len(text), len(secret) - 1), LEAST_SECRET - 1, -1):
        if text.endswith(secret[:length]):
            return text[:-length] + HIDDEN
    return text


@lru_cache(maxsize=16)
def _spellings(secret: str) -> re.Pattern[str]:
    """Letters, digits and `-._` are never escaped: most tokens are one literal, which is found fast."""
    return re.compile("".join(sign if sign.isalnum() else _escaped(sign) for sign in secret))


def _escaped(sign: str) -> str:
    plain = re.escape(sign)
    if sign in "-._":
        return plain
    # The longest spelling first: an escaped % begins with a plain one.
    return rf"\\{{0,4}}(?:(?i:u00{ord(sign):02x})|(?i:%(?:25){{0,2}}{ord(sign):02x})|{plain})"


def without_credentials(url: str) -> str:
    """A URL as errors may show it: no user name or password, also where it is no URL, and nothing of a query."""
    start = re.match(r"(?:[A-Za-z][A-Za-z0-9+.-]*://)?", url)
    scheme = start[0] if start else ""
    _, at, rest = url[len(scheme) :].rpartition("@")
    shown = re.sub(r"([?#]).*", r"\1…", rest, flags=re.DOTALL)
    return f"{scheme}{at and '…@'}{shown}"


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


def base_url(address: str) -> str:
    """Refuse what no path can be put behind, and what a query would show.

    Raises:
        ValueError: with the end of a sentence that begins with the field.
    """
    # `urlsplit` would drop line breaks without a word.
    if not address.isprintable() or " " in address:
        raise ValueError("is not a URL: it holds spaces, line breaks or characters that can't be printed")
    for sign, what in (("?", "a query"), ("#", "a fragment")):
        if sign in address:
            raise ValueError(f"can't have {what} ({sign}…): a path is put behind it; a key goes into `api_key_secret`")
    if address.rstrip("/").endswith(CHAT_PATH):
        raise ValueError(FULL_URL)
    return _without_credentials(address)


def _known_source(address: str) -> str:
    scheme, separator, _ = address.partition("://")
    if not separator:
        return address
    if scheme not in {"gs", "http", "https", "hf"}:
        raise ValueError("names a scheme that can't be read; gs://, https:// and hf:// can")
    _without_credentials(address)
    parts = urlsplit(address)
    for name, _ in parse_qsl(f"{parts.query}&{parts.fragment}", keep_blank_values=True):
        if IN_A_QUERY.search(name):
            raise ValueError(
                f"would show `{name[:30]}` of its query in the console: "
                "give a gs:// address, which the job's account reads"
            )
    return address


def is_secret(name: str) -> bool:
    """Whether the name of an environment variable says that its value is a secret."""
    return re.search(rf"(^|_)({SECRET_WORDS})$", name, re.IGNORECASE) is not None


def is_secret_flag(flag: str) -> bool:
    """Whether the name of an argument, with its dashes, says that its value is a secret."""
    return re.fullmatch(rf"--?([\w-]*[-_])?({SECRET_WORDS})", flag, re.IGNORECASE) is not None


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
        if is_secret_flag(flag):
            raise ValueError(f"{flag} would show in the console: nothing secret may stand in arguments")
    return args


Url = Annotated[str, AfterValidator(base_url)]
Source = Annotated[str, AfterValidator(_known_source)]
Env = Annotated[dict[str, str], AfterValidator(_no_secrets_in_env)]
Args = Annotated[tuple[str, ...], AfterValidator(_no_secrets_in_args)]
