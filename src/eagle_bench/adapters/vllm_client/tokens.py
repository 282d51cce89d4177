"""Bearer tokens for the requests of a cell: always valid, asked for as rarely as may be, never shown."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable
from typing import Protocol, runtime_checkable

from eagle_bench.errors import EagleBenchError

_TOKEN_AGE_S = 0.25
_TROUBLE_AGE_S = 1.0  # a supplier tries for some seconds: a cell of a thousand requests must not wait for each of them
_RENEWAL_PAUSE_S = 60.0  # a new token that is refused too was not refused for its age: another one would not help


class TokenUnavailable(Exception):
    """No bearer token could be had; the text says why, and never holds one."""


@runtime_checkable
class RenewingSupplier(Protocol):
    """A supplier that keeps its token, and gets a new one when it hears that a server answered 401 to it."""

    def __call__(self) -> str: ...

    def refused(self, token: str) -> None: ...


class TokenKeeper:
    """Asks for a token for each request, off the event loop; requests of one burst share one answer.

    Only a `RenewingSupplier` is told of a token that was refused: of any other nothing new would come.
    """

    def __init__(self, supplier: Callable[[], str] | None) -> None:
        self._supplier = supplier
        self._token: str | None = None
        self._asked_s = 0.0
        self._trouble: tuple[float, str] | None = None
        self._lock = asyncio.Lock()
        self._renewing = supplier if isinstance(supplier, RenewingSupplier) else None
        self._refused: str | None = None
        self._renewed_s: float | None = None

    @property
    def wanted(self) -> bool:
        """Whether the target takes a token at all."""
        return self._supplier is not None

    async def current(self) -> str | None:
        """A token that is valid now; None for a target without one.

        Raises:
            TokenUnavailable: the supplier failed, or gave nothing that can be sent.
        """
        if self._supplier is None:
            return None
        if self._token is not None and time.monotonic() - self._asked_s < _TOKEN_AGE_S:
            return self._token
        async with self._lock:
            if self._trouble is not None and time.monotonic() - self._trouble[0] < _TROUBLE_AGE_S:
                raise TokenUnavailable(self._trouble[1])
            if self._token is None or time.monotonic() - self._asked_s >= _TOKEN_AGE_S:
                self._token = None
                try:
                    token = await self._ask(self._supplier)
                except TokenUnavailable as error:
                    self._trouble = time.monotonic(), str(error)
                    raise
                self._token, self._asked_s = token, time.monotonic()
                return token
            return self._token

    @property
    def renewed(self) -> bool:
        """Whether a token was refused and another one was taken in its place."""
        return self._renewed_s is not None

    def refused(self, token: str) -> None:
        """A server answered 401 to this token: requests to come get a new one, if that may help.

        The request that carried it stays a failure; it is not sent again.
        """
        now = time.monotonic()
        if self._renewing is None or token == self._refused:
            return
        if self._renewed_s is not None and now - self._renewed_s < _RENEWAL_PAUSE_S:
            return
        self._renewed_s, self._refused, self._token = now, token, None

    async def _ask(self, supplier: Callable[[], str]) -> str:
        def ask() -> str:
            if self._renewing is not None and self._refused is not None:
                self._renewing.refused(self._refused)
            return supplier()

        try:
            token: object = await asyncio.to_thread(ask)
        except EagleBenchError as error:
            raise TokenUnavailable(str(error)) from None
        except Exception as error:  # whatever library the supplier uses, a request must only fail
            raise TokenUnavailable(f"No access token: {type(error).__name__}: {error}") from None
        if not isinstance(token, str) or not token.isascii() or not token.isprintable() or not token.strip():
            raise TokenUnavailable("No access token: the credentials gave none that can be sent.")
        return token
