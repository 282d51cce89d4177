"""Errors that a person at the terminal can act on.

    EagleBenchError            1  an unexpected fault
    ├── InputError             2  the user's input: what was given, where, what is allowed
    ├── GateFailed             3  a gate (a regression limit) failed
    ├── NoUsableResult         4  the run ended without a result that can be used
    └── ServiceError           1  another system refused or broke: which one, what it said, what to do

The number is the exit status of the command line.
"""

from __future__ import annotations

from typing import ClassVar


def because(what: str, reason: object) -> str:
    """One sentence of what failed and the words of who knows why, which may end in a full stop of their own."""
    words = str(reason).strip().rstrip(".")
    return f"{what}: {words}." if words else f"{what}."


class EagleBenchError(Exception):
    """Base of every error this package raises on purpose.

    Args:
        message: one sentence with the field, file or resource at fault.
        hint: what to do about it, where that is known.
    """

    exit_status: ClassVar[int] = 1

    def __init__(self, message: str, *, hint: str | None = None) -> None:
        super().__init__(message)
        self.message = message
        self.hint = hint

    def __str__(self) -> str:
        return f"{self.message} {self.hint}" if self.hint else self.message


class InputError(EagleBenchError):
    """The user's input can't be used as it is."""

    exit_status = 2


class GateFailed(EagleBenchError):
    """A gate that the user set did not hold."""

    exit_status = 3


class NoUsableResult(EagleBenchError):
    """The run ended, and nothing it measured can support an answer."""

    exit_status = 4


class ServiceError(EagleBenchError):
    """Another system refused a request or broke while serving it.

    Args:
        message: what was asked of which system, and what it answered.
        kind: a stable word for the cause: "authentication", "permission", "quota", "not-found",
            "image", "eula", "gated-model", "region", "timeout", "cancelled", "unavailable", "other".
        hint: what to do about it.
    """

    def __init__(self, message: str, *, kind: str = "other", hint: str | None = None) -> None:
        super().__init__(message, hint=hint)
        self.kind = kind
