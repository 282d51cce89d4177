"""What a person reads of the exceptions of Google's libraries, and of a job's error."""

from __future__ import annotations

import google.auth.exceptions
import pytest

from eagle_bench import cli
from eagle_bench.adapters.running_jobs import reason
from eagle_bench.adapters.vertex_errors import service_error
from eagle_bench.commands.states import shown_reason
from eagle_bench.errors import because

POOL = "HTTPSConnectionPool(host='us-central1-aiplatform.googleapis.com', port=443)"
ADDED = (
    "The DAG failed because some tasks failed. The failed tasks are: [conclude].; Job (project_id = p, job_id = 1) is "
    "failed due to the above error.; Failed to handle the job: {project_number = 1, job_id = 1}"
)


@pytest.mark.parametrize(
    ("said", "why"),
    [
        (
            f"{POOL}: Max retries exceeded with url: /v1/x?key=1 (Caused by NewConnectionError("
            "'<HTTPSConnection object>: Failed to establish a new connection: [Errno 111] Connection refused'))",
            "Connection refused",
        ),
        (
            f'{POOL}: Max retries exceeded with url: /v1/x?key=1 (Caused by NameResolutionError("HTTPSConnection('
            "host='x', port=443): Failed to resolve 'x' ([Errno -2] Name or service not known)\"))",
            "Name or service not known",
        ),
        (f"{POOL}: Read timed out. (read timeout=30)", "Read timed out"),
        (
            f"{POOL}: Max retries exceeded with url: /v1/x?key=1 (Caused by ResponseError('too many 503 answers'))",
            "too many 503 answers",
        ),
    ],
)
@pytest.mark.parametrize("kind", [OSError, google.auth.exceptions.TransportError])
def test_a_lost_connection_is_one_sentence_with_host_and_reason(said, why, kind):
    error = service_error("list endpoints", kind(said))
    where = "us-central1-aiplatform.googleapis.com:443"
    assert error.message == f"Vertex AI ({where}) can't be reached to list endpoints: {why}."
    assert error.kind == "unavailable"


@pytest.mark.parametrize(
    ("said", "message"),
    [
        (
            "Your default credentials were not found. To set up …",
            "No Google credentials were found on this machine.",
        ),
        ("File x.json was not found.", "No Google credentials were found on this machine: File x.json was not found."),
    ],
)
def test_credentials_that_are_not_there_are_no_refusal(said, message):
    error = service_error("find Google credentials", google.auth.exceptions.DefaultCredentialsError(said))
    assert error.message == message
    assert "gcloud auth application-default login" in (error.hint or "")


def test_a_jobs_error_is_shown_without_what_stands_above_it_and_whole_with_debug(monkeypatch):
    assert reason("disk full; Job (project_id = p, job_id = 1) is failed due to the above error.") == "disk full"
    assert reason(None) is None
    assert shown_reason(ADDED) is None
    assert shown_reason(ADDED, said=False) == ADDED.partition(";")[0]

    import click

    @click.command()
    def tell():
        click.echo(shown_reason(ADDED))

    monkeypatch.setattr(cli.Commands, "get_command", lambda *_: tell)
    monkeypatch.setitem(cli.COMMANDS, "tell", "")
    seen = []
    monkeypatch.setattr(click, "echo", lambda text, **_: seen.append(text))
    for arguments in (["tell"], ["tell", "--debug"]):
        with pytest.raises(SystemExit):
            cli.main(arguments)
    assert seen == [None, ADDED]


@pytest.mark.parametrize(
    ("reason", "said"),
    [("it is down", "No: it is down."), ("It is down. ", "No: It is down."), ("", "No."), (OSError(), "No.")],
)
def test_a_reason_ends_its_sentence_once(reason, said):
    assert because("No", reason) == said
