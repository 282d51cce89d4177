"""What a client should have found, worked out from the truth server's journal alone."""

from __future__ import annotations

import statistics
from collections import Counter
from typing import Any

FAILING = {"empty", "blank", "cut", "cut-clean", "error-event", "not-sse", "broken-json", "hang"}

Entry = dict[str, Any]


def failed(entry: Entry) -> bool:
    return entry["status"] != 200 or entry["fault"] in FAILING


def counts(journal: list[Entry]) -> dict[str, int]:
    lost = sum(failed(entry) for entry in journal)
    return {
        "requested": len(journal),
        "completed": len(journal) - lost,
        "failed": lost,
        "empty": sum(entry["fault"] in {"empty", "blank"} for entry in journal),
    }


def faults(journal: list[Entry]) -> Counter[str]:
    return Counter(entry["fault"] or str(entry["status"]) for entry in journal if failed(entry))


def good(journal: list[Entry]) -> list[Entry]:
    return [entry for entry in journal if not failed(entry)]


def contents_s(entry: Entry) -> list[float]:
    return [sent["at_s"] for sent in entry["sent"] if sent["what"] == "content"]


def ttft_ms(entry: Entry) -> float:
    return (contents_s(entry)[0] - entry["received_s"]) * 1000


def e2e_ms(entry: Entry) -> float:
    return (contents_s(entry)[-1] - entry["received_s"]) * 1000


def tpot_ms(entry: Entry) -> float:
    return (e2e_ms(entry) - ttft_ms(entry)) / (entry["tokens"] - 1)


def median(of: Any, journal: list[Entry]) -> float:
    return statistics.median(of(entry) for entry in good(journal))
