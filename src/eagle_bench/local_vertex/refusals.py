"""Errors as Google's APIs answer them: an HTTP status, a canonical status, a message, in JSON."""

from __future__ import annotations

from typing import Any

STATUS = {
    400: "INVALID_ARGUMENT",
    401: "UNAUTHENTICATED",
    403: "PERMISSION_DENIED",
    404: "NOT_FOUND",
    409: "ALREADY_EXISTS",
    429: "RESOURCE_EXHAUSTED",
    499: "CANCELLED",
    500: "INTERNAL",
    501: "UNIMPLEMENTED",
    503: "UNAVAILABLE",
    504: "DEADLINE_EXCEEDED",
}

# google.rpc.Code, as operations and jobs carry it
CANCELLED, UNKNOWN, DEADLINE_EXCEEDED, RESOURCE_EXHAUSTED, FAILED_PRECONDITION, INTERNAL = 1, 2, 4, 8, 9, 13


class Refusal(Exception):
    """An answer other than 200."""

    def __init__(self, code: int, message: str, *, status: str | None = None) -> None:
        super().__init__(message)
        self.code, self.message = code, message
        self.status = status or STATUS.get(code, "UNKNOWN")

    def body(self) -> dict[str, Any]:
        return {"error": {"code": self.code, "message": self.message, "status": self.status}}


def not_found(name: str) -> Refusal:
    return Refusal(404, f"Resource {name} is not found.")
