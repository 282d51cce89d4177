"""The codes of warnings, failures and errors, and the exit statuses."""

from __future__ import annotations

from eagle_bench import codes, errors
from eagle_bench.adapters.vertex_errors import HINTS
from eagle_bench.errors import EagleBenchError
from reference_pages import MADE, code, sentence, table

SIGNALS = [
    ["129", "A closed terminal (SIGHUP) ended it; under `nohup` it goes on."],
    ["130", "Ctrl-C (SIGINT) ended it."],
    ["143", "SIGTERM ended it."],
]
ENDED = """
A command that a signal ends: `run` and `bench` keep what was measured, and `run` leaves nothing running; a job of `submit`
runs on, and what ends it is said.
"""


def page() -> str:
    warnings = [[code(name), sentence(seen), sentence(do)] for name, (seen, do) in codes.WARNINGS.items()]
    of_cells = [[code(name), sentence(seen), sentence(do)] for name, (seen, do) in codes.CELL_WARNINGS.items()]
    requests = [[code(name), sentence(text)] for name, text in codes.REQUEST_ERRORS.items()]
    failures = [[code(name), sentence(text), HINTS.get(name, "")] for name, text in codes.FAILURES.items()]
    heads = ["code", "what was seen", "what to do"]
    return (
        f"{MADE}# Codes\n\nStable words that scripts can rely on. The texts beside them are for people and may change.\n"
        f"\n## Exit statuses\n\n{table(['status', 'meaning'], _statuses())}{ENDED}"
        "\n## Warnings of a comparison\n\n`warnings[].code` of `comparison.json`, the gravest first; the report shows them "
        f"with their numbers.\n\n{table(heads, warnings)}"
        f"\n## Warnings of a cell\n\n`warnings` of `cell.json`, each as `CODE: text`.\n\n{table(heads, of_cells)}"
        "\n## Errors of a request\n\n`requests[].error.kind` of `cell.json`. A failed request is never sent again: a retry "
        f"would hide the failure.\n\n{table(['kind', 'what happened'], requests)}"
        "\n## Failures of a stage\n\n`failure.kind` of `cell.json`, where a stage before the measurement broke; errors at "
        f"the terminal have the same kinds.\n\n{table(['kind', 'what happened', 'what to do'], failures)}"
    )


def _statuses() -> list[list[str]]:
    found: dict[int, list[str]] = {0: ["done"]}
    for error in (errors.EagleBenchError, *EagleBenchError.__subclasses__()):
        found.setdefault(error.exit_status, []).append(" ".join((error.__doc__ or "").split("Args:")[0].split()))
    found[1] = ["an unexpected fault, or another system refused or broke"]
    return [[str(status), sentence(" ".join(texts))] for status, texts in sorted(found.items())] + SIGNALS
