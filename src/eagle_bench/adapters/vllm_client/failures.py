"""What an answer that is none has for an error, and a cell without answers. An answer's is not cut here: a secret in it is
hidden first.
"""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Sequence
from typing import Any

from eagle_bench.adapters.vllm_client import http1
from eagle_bench.results import CellFailure, ErrorKind, RequestError, RequestRecord

_REDIRECTS = {301, 302, 303, 307, 308}
_STATUSES: dict[int, ErrorKind] = {
    401: "authentication",
    403: "authentication",
    408: "timeout",
    429: "quota",
    503: "overload",
    504: "timeout",
    529: "overload",
}


def error_kind(status: int) -> ErrorKind:
    """The kind of a response that is not 200."""
    if status in _STATUSES:
        return _STATUSES[status]
    return "server-error" if status >= 500 else "refused"


def refusal(head: http1.Head, body: bytes) -> RequestError:
    text = body.decode("utf-8", "replace").strip()
    location = head.headers.get("location")
    if head.status in _REDIRECTS and location:
        # Followed, it would put another server's time into the measurement.
        text = (
            f"The server redirects to {location}. Use {location.removesuffix('/chat/completions')} as the URL. {text}"
        )
    return RequestError(
        kind=error_kind(head.status), status=head.status, body=text.strip() or "The server gave no reason."
    )


def malformed(what: str, found: bytes) -> RequestError:
    text = found.decode("utf-8", "replace").strip()
    return RequestError(kind="malformed-stream", status=200, body=f"{what}: {text}")


def event_error(error: Any) -> RequestError:
    """An error inside a stream whose status was 200."""
    code = error.get("code") if isinstance(error, dict) else None
    status = code if isinstance(code, int) and 400 <= code < 600 else None
    text = json.dumps(error, ensure_ascii=False) if not isinstance(error, str) else error
    return RequestError(kind=error_kind(status) if status else "server-error", status=status or 200, body=text)


def cell_failure(records: Sequence[RequestRecord], probe_error: RequestError | None) -> CellFailure:
    """Why a cell has nothing: the commonest error, in the server's own words."""
    errors = [r.error for r in records if r.error is not None] or ([probe_error] if probe_error else [])
    if not errors:
        return CellFailure(stage="benchmark", kind="interrupted", message="No request was sent.")
    kind = Counter(error.kind for error in errors).most_common(1)[0][0]
    error = next(e for e in errors if e.kind == kind)
    status = f", HTTP {error.status}" if error.status else ""
    if not records:
        return CellFailure(stage="benchmark", kind=kind, message=f"No request was sent: {error.body[:500]}")
    return CellFailure(
        stage="benchmark",
        kind=kind,
        message=f"None of {len(records)} requests succeeded; {sum(e.kind == kind for e in errors)} × {kind}{status}: "
        f"{error.body[:500]}",
    )
