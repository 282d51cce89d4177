"""Names of what a run makes, derived from run and variant: found again without a word from who made it."""

from __future__ import annotations

import hashlib
import re

PREFIX = "eb-"
LONGEST = 63
RUN_LABEL, VARIANT_LABEL = "eagle-bench-run", "eagle-bench-variant"


def endpoint_id(run_id: str, variant_id: str) -> str:
    """The id of a variant's endpoint, and of its model: [a-z0-9-], 63 characters at most.

    A hash of the run and one of both end it: two variants differ also where their names are cut or simplified,
    and a run's endpoints are told from those of a run whose name begins alike.
    """
    digest = f"{run_digest(run_id)}{_digest(run_id, variant_id)[:8]}"
    readable = re.sub(r"[^a-z0-9]+", "-", f"{PREFIX}{run_id}-{variant_id}".lower())
    return f"{readable[: LONGEST - len(digest) - 1].rstrip('-')}-{digest}"


def run_digest(run_id: str) -> str:
    """What the last part of all ids of a run begins with."""
    return _digest(run_id)[:6]


def _digest(*parts: str) -> str:
    return hashlib.sha256("\n".join(parts).encode()).hexdigest()


def labels(run_id: str, variant_id: str) -> dict[str, str]:
    """Labels for all that a run makes."""
    return {RUN_LABEL: label_value(run_id), VARIANT_LABEL: label_value(variant_id)}


def label_value(text: str) -> str:
    """Text as a label can hold it: [a-z0-9_-], 63 characters at most, told apart by a hash where it is changed."""
    plain = re.sub(r"[^a-z0-9_-]", "-", text.lower())
    if plain == text and len(text) <= LONGEST:
        return text
    return f"{plain[: LONGEST - 9]}-{_digest(text)[:8]}"
