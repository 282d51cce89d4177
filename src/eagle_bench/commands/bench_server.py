"""The server that `bench` measures: whether its URL and key can be used, then whether anybody is there."""

from __future__ import annotations

import asyncio
import os
from collections.abc import Callable
from dataclasses import replace
from urllib.parse import urlsplit

from eagle_bench.adapters.vllm_client import Target
from eagle_bench.adapters.vllm_client.pages import served_model, unreachable
from eagle_bench.adapters.vllm_client.target import address, metrics_beside
from eagle_bench.errors import InputError, because


def named(base_url: str, api_key_env: str | None) -> Target:
    """What the options name; nothing is asked yet.

    Raises:
        InputError: the URL can't be used, or the variable holds no key.
    """
    try:
        target = Target(base_url=base_url, metrics_url=metrics_beside(base_url))
        address(base_url)
    except InputError as error:
        raise InputError(f"--base-url {error.message}", hint=error.hint) from None
    return replace(target, token=_token(api_key_env))


def reached(target: Target, model: str | None) -> Target:
    """The target with the model's name, once a connection was made: a dead port would fail request by request.

    Args:
        model: the name; None for the first that the server lists.

    Raises:
        InputError: no connection can be made.
    """
    url = target.base_url
    if (why := asyncio.run(unreachable(url))) is not None:
        raise InputError(because(f"--base-url {url}: can't be reached", why), hint="Start the server, or mend the URL.")
    at_root = not urlsplit(url).path.strip("/")
    for base in (url, url.rstrip("/") + "/v1") if at_root else (url,):
        if model is None:
            model = asyncio.run(served_model(base, target.token() if target.token else None))
    return replace(target, model=model or "")


def _token(variable: str | None) -> Callable[[], str] | None:
    if variable is None:
        return None
    value = os.environ.get(variable, "")
    if not value.strip():
        raise InputError(f"--api-key-env {variable}: there is no such environment variable, or it is empty.")
    if not value.isascii() or not value.isprintable():
        raise InputError(f"--api-key-env {variable}: it holds something else than printable ASCII, and can't be sent.")
    return lambda: value
