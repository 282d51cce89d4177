"""The adapter's deploy and teardown, through what goes wrong on the way."""

from __future__ import annotations

import subprocess
import sys
import textwrap
from datetime import UTC
from types import SimpleNamespace

import httpx
import pytest

from eagle_bench.adapters import vertex, vertex_deploy
from eagle_bench.errors import ServiceError
from eagle_bench.progress import told
from eagle_bench.serving import Serving
from eagle_bench.tasks import deploy as task
from eagle_bench.tasks import teardown
from eagle_bench.variants import VariantSpec

PLACE = vertex.Place("p", "us-central1")


def spec(*args, variant="base", **changes):
    return VariantSpec(id=variant, model="owner/name", serving=Serving(image="tiny", args=args, **changes))


def deploy(*args, run="run", **changes):
    return vertex.deploy(PLACE, run, spec(*args, **changes))


def test_a_variant_is_deployed_labelled_and_torn_down(order):
    order("slow-start", seconds=1)  # so that there is progress to tell of
    operations, lines = [], []
    made = vertex.deploy(PLACE, "run", spec(), on_operation=operations.append, on_progress=lines.append)
    name = vertex.endpoint_id("run", "base")
    assert made == vertex.Deployed(f"{PLACE}/endpoints/{name}", f"{PLACE}/models/{name}")
    assert len(operations) == 1
    assert any("waiting for the endpoint" in line for line in lines)
    assert {(one.resource, one.run, one.variant) for one in vertex.leftovers(PLACE, "run")} == {
        (made.endpoint, "run", "base"),
        (made.model, "run", "base"),
    }
    assert all(one.created.tzinfo == UTC for one in vertex.leftovers(PLACE))
    assert vertex.teardown(PLACE, "run", "base") == vertex.TeardownReport(deleted=(made.endpoint, made.model))
    assert vertex.teardown(PLACE, "run", "base") == vertex.TeardownReport()
    assert vertex.leftovers(PLACE) == ()


@pytest.mark.usefixtures("server")
def test_what_is_given_back_is_said_in_words_and_its_names_are_in_the_log(capsys):
    made = deploy()
    teardown.teardown(PLACE.project, PLACE.location, "run", spec().model_dump())
    lines = capsys.readouterr().out.splitlines()
    assert [told(line) for line in lines if told(line)] == ["base: given back: endpoint and model"]
    assert lines[-1] == f"deleted {made.endpoint}, {made.model}"


@pytest.mark.parametrize(
    ("run", "variant", "named"),
    [
        ("run", "base", "base"),
        ("another-run", "base", "base of another-run"),
        ("run", "a-variant-whose-name-is-cut-in-the-id-of", "a-variant-whose-name-is-cut-in-the-id-of"),
    ],
)
def test_who_waits_for_the_machine_of_another_is_told_of_whose(server, run, variant, named):
    run, other = run.ljust(40, "r"), "run".ljust(40, "r")
    named = named.replace("another-run", run)
    vertex.deploy(PLACE, run, spec(variant=variant))
    lines = []
    with pytest.raises(ServiceError) as caught:
        vertex.deploy(PLACE, other, spec(variant="other"), on_progress=lines.append, timeout_s=1)
    assert caught.value.kind == "timeout"
    assert lines[-1].startswith(f"other: waits for the machine that {named} uses, ")
    assert vertex.teardown(PLACE, run, variant).clean
    lines.clear()
    assert vertex.deploy(PLACE, other, spec(variant="other"), on_progress=lines.append).endpoint
    assert not any("waits for the machine" in line for line in lines)


def test_the_wait_for_a_machine_is_no_part_of_the_deployment(server, monkeypatch, tmp_path, capfd):
    """The operation is looked at after 5, 61 and 70 seconds; the machine is another's until the second look."""
    really_wait, ahead = vertex_deploy.wait, iter([("baseline",), ("baseline",)])
    monkeypatch.setattr(vertex_deploy.Ahead, "of", lambda self, operation: next(ahead, ()))

    def wait(*arguments, on_poll, **options):
        for elapsed_s in (5.0, 61.0, 70.0):
            on_poll(elapsed_s, None)
        return really_wait(*arguments, on_poll=lambda *_: None, **options)

    monkeypatch.setattr(vertex_deploy, "wait", wait)
    lines = []
    assert vertex.deploy(PLACE, "run", spec(), on_progress=lines.append).waited_s == 61
    assert lines == [
        "base: waits for the machine that baseline uses, 5 s so far",
        "base: waits for the machine that baseline uses, 61 s so far",
        "base: waiting for the endpoint to serve, 9 s so far",
    ]

    made = vertex.Deployed("projects/p/locations/l/endpoints/e", "projects/p/locations/l/models/e", waited_s=1e6)
    monkeypatch.setattr(vertex, "deploy", lambda *_, **__: made)
    monkeypatch.setattr(vertex, "machine_sharing", lambda name: "one-at-a-time")
    monkeypatch.setattr(task, "time", SimpleNamespace(monotonic=iter([0.0, 1e6 + 26]).__next__))
    endpoint, nothing = SimpleNamespace(metadata={}), SimpleNamespace(metadata={})
    task.deploy("p", "l", "run", spec().as_parameter(), nothing, endpoint, str(tmp_path / "resources"))
    assert "base: deployed after 26 s, and 1000000 s of waiting for the machine\n" in capfd.readouterr().out
    assert endpoint.metadata["deploySeconds"] == 26


def test_a_wait_for_a_machine_is_told_once_a_minute(monkeypatch, tmp_path, capfd):
    from eagle_bench import progress

    now_s = 0.0

    def waits(*_, on_progress, **__):
        nonlocal now_s
        for now_s in (0.0, 15.0, 59.0, 61.0, 100.0):
            on_progress(f"base: waits for the machine that baseline uses, {now_s:.0f} s so far")
        on_progress("base: waiting for the endpoint to serve, 1 s so far")
        return vertex.Deployed("projects/p/locations/l/endpoints/e", "projects/p/locations/l/models/e")

    monkeypatch.setattr(progress, "time", SimpleNamespace(monotonic=lambda: now_s))
    monkeypatch.setattr(vertex, "deploy", waits)
    monkeypatch.setattr(vertex, "machine_sharing", lambda name: "one-at-a-time")
    endpoint, nothing = SimpleNamespace(metadata={}), SimpleNamespace(metadata={})
    task.deploy("p", "l", "run", spec().as_parameter(), nothing, endpoint, str(tmp_path / "resources"))
    told = [line.partition("base: ")[2] for line in capfd.readouterr().out.splitlines() if "so far" in line]
    waited = "waits for the machine that baseline uses"
    assert told == [f"{waited}, 0 s so far", f"{waited}, 61 s so far", "waiting for the endpoint to serve, 1 s so far"]


@pytest.mark.parametrize(
    ("fault", "kind", "hint"),
    [
        ("deploy-quota", "quota", "Ask for more of CustomModelServingH100GPUsPerProjectPerRegion in us-central1"),
        (
            "deploy-permission",
            "permission",
            "roles/aiplatform.user on projects/p (it lacks aiplatform.endpoints.create)",
        ),
        ("deploy-eula", "eula", "`serving.accept_eula: true`"),
        ("deploy-gated-model", "gated-model", "https://huggingface.co/owner/name"),
        ("deploy-region", "region", "`location` is us-central1"),
        ("deploy-image", "image", "that tiny is there"),
    ],
)
def test_refusals_are_told_apart_and_say_what_to_do(order, fault, kind, hint):
    order(fault)
    with pytest.raises(ServiceError) as caught:
        deploy()
    assert caught.value.kind == kind
    assert hint in caught.value.hint
    assert "variant 'base'" in caught.value.message
    assert vertex.leftovers(PLACE) == ()


def test_long_answers_are_allowed(order):
    from google.cloud import aiplatform_v1

    client = aiplatform_v1.EndpointServiceClient(**vertex.address("us-central1").client_options())
    made = deploy(request_timeout_s=1800)
    assert client.get_endpoint(name=made.endpoint).client_connection_config.inference_timeout.seconds == 1800
    assert vertex.teardown(PLACE, "run", "base").clean
    order("api-status", match=":update", status=403)
    lines = []
    made = vertex.deploy(PLACE, "run", spec(request_timeout_s=1800), on_progress=lines.append)
    assert client.get_endpoint(name=made.endpoint).client_connection_config.inference_timeout.seconds == 600
    assert any("requests are cut after 600 s, not 1800 s" in line for line in lines)


def test_a_crash_at_load_says_why_and_is_torn_down(server):
    with pytest.raises(ServiceError, match="vocabulary 32000 against 49152"):
        deploy("--crash")
    assert vertex.teardown(PLACE, "run", "base").clean
    assert vertex.leftovers(PLACE) == ()


def test_an_answer_that_is_none_is_an_error(order):
    order("operation-garbage", times=None)
    with pytest.raises(ServiceError, match="no deploy's"):
        deploy()


def test_a_busy_api_while_waiting_is_waited_for(order):
    order("slow-start", seconds=2)
    order("api-status", match="/operations/", status=503, times=2)
    order("api-status", match="/operations/", status=429, times=1)
    assert deploy().endpoint


def test_the_time_out_cancels_the_operation(server, processes_with):
    with pytest.raises(ServiceError) as caught:
        vertex.deploy(PLACE, "run", spec("--deaf", "--mark-timeout"), timeout_s=1)
    assert caught.value.kind == "timeout"
    assert not processes_with("--mark-timeout")
    assert len(vertex.leftovers(PLACE, "run")) == 2
    assert vertex.teardown(PLACE, "run", "base").clean
    assert vertex.leftovers(PLACE) == ()


def test_a_retried_deploy_finds_what_is_there(server):
    first = deploy()
    operations = []
    assert vertex.deploy(PLACE, "run", spec(), on_operation=operations.append) == first
    assert operations == []


DEPLOY = """
    import sys
    from eagle_bench.adapters import vertex
    from eagle_bench.serving import Serving
    from eagle_bench.variants import VariantSpec
    spec = VariantSpec(id="base", model="owner/name", serving=Serving(image="tiny", args=(sys.argv[1],)))
    vertex.deploy(vertex.Place("p", "us-central1"), "run", spec, on_operation=lambda name: print(name, flush=True))
"""


def start_deploy(mark):
    """A deploy in a process of its own, begun: its operation's name has been reported."""
    process = subprocess.Popen([sys.executable, "-c", textwrap.dedent(DEPLOY), mark], stdout=subprocess.PIPE, text=True)
    return process, process.stdout.readline().strip()


def test_a_restarted_deploy_goes_on_with_the_operation_that_runs(server):
    deploy(run="other")  # has the only machine
    process, begun = start_deploy("--mark-restarted")
    process.kill()
    process.communicate()
    operations = []

    def on_operation(name):
        operations.append(name)
        assert vertex.teardown(PLACE, "other", "base").clean

    made = vertex.deploy(PLACE, "run", spec("--mark-restarted"), on_operation=on_operation)
    assert operations == [begun]
    assert made.endpoint.endswith(vertex.endpoint_id("run", "base"))


def test_the_remains_of_a_failed_deploy_are_replaced(order):
    order("operation-fails")
    with pytest.raises(ServiceError, match="ordered for a test"):
        deploy()
    assert len(vertex.leftovers(PLACE, "run")) == 2
    assert deploy().endpoint


def test_sigterm_cancels_the_operation(order, bearer, server, until):
    order("operation-hangs")
    process, begun = start_deploy("--mark-terminated")
    process.terminate()
    process.communicate(timeout=60)
    assert process.returncode == 143
    operation = httpx.get(f"{server.url}/v1/{begun}", headers=bearer()).json()
    assert operation["error"]["message"] == "The operation was cancelled."


def test_teardown_of_a_running_deploy_cancels_it(order, processes_with):
    order("slow-start", seconds=600)
    process, _ = start_deploy("--mark-running")
    assert vertex.teardown(PLACE, "run", "base").clean
    process.communicate(timeout=60)
    assert process.returncode == 1
    assert vertex.leftovers(PLACE) == ()


@pytest.mark.parametrize("fault", ["undeploy-fails", "delete-endpoint-fails", "delete-model-fails"])
@pytest.mark.parametrize("status", [503, 429, 500])
def test_teardown_tries_again(order, fault, status):
    deploy()
    order(fault, status=status, times=2)
    report = vertex.teardown(PLACE, "run", "base", retry_delays_s=(0, 0, 0))
    assert report.clean
    assert len(report.deleted) == 2
    assert vertex.leftovers(PLACE) == ()


@pytest.mark.parametrize("fault", ["undeploy-fails", "delete-endpoint-fails"])
def test_teardown_says_what_it_could_not_delete_and_how_to(order, fault):
    made = deploy()
    order(fault, status=503, times=None)
    report = vertex.teardown(PLACE, "run", "base", retry_delays_s=(0,))
    assert not report.clean
    left = {one.resource: one for one in report.left}
    assert made.endpoint in left
    assert "ordered for a test" in left[made.endpoint].why
    name = vertex.endpoint_id("run", "base")
    assert left[made.endpoint].command.startswith(f"gcloud ai endpoints delete {name} --project=p --region=us-central1")
    assert {one.resource for one in vertex.leftovers(PLACE)} == set(left)


def test_teardown_without_permission_does_not_try_again(order):
    deploy()
    order("delete-model-fails", status=403, times=1)
    report = vertex.teardown(PLACE, "run", "base", retry_delays_s=(0, 0, 0))
    assert [one.resource for one in report.left] == [f"{PLACE}/models/{vertex.endpoint_id('run', 'base')}"]


def test_teardown_survives_the_endpoint_being_gone(server):
    from google.cloud import aiplatform_v1

    made = deploy()
    client = aiplatform_v1.EndpointServiceClient(**vertex.address("us-central1").client_options())
    deployed = client.get_endpoint(name=made.endpoint).deployed_models[0].id
    client.undeploy_model(endpoint=made.endpoint, deployed_model_id=deployed).result(timeout=60)
    client.delete_endpoint(name=made.endpoint).result(timeout=60)
    assert vertex.teardown(PLACE, "run", "base") == vertex.TeardownReport(deleted=(made.model,))


def test_a_model_that_stayed_without_its_endpoint_is_replaced(order):
    deploy()
    order("delete-model-fails", status=403)
    assert [one.resource for one in vertex.teardown(PLACE, "run", "base").left] == [
        f"{PLACE}/models/{vertex.endpoint_id('run', 'base')}"
    ]
    assert deploy().endpoint


@pytest.mark.parametrize("status", [403, 404, 501])
def test_who_may_not_list_operations_can_deploy_and_tear_down(order, status):
    order("api-status", match="/operations", skip=0, times=1, status=status)
    deploy()
    order("api-status", match="us-central1/operations", times=1, status=status)
    assert len(vertex.teardown(PLACE, "run", "base").deleted) == 2


def test_an_operation_whose_name_can_not_be_written_down_is_cancelled(order, processes_with):
    def disk_full(name):
        raise OSError(28, "No space left on device")

    order("slow-start", seconds=600)
    with pytest.raises(OSError, match="No space left"):
        vertex.deploy(PLACE, "run", spec("--mark-full"), on_operation=disk_full)
    assert vertex.teardown(PLACE, "run", "base", retry_delays_s=()).clean


def test_a_model_that_is_undeployed_meanwhile_does_not_stop_the_teardown(order):
    made = deploy()
    order("undeploy-fails", status=404)
    order("delete-endpoint-fails", status=400)
    report = vertex.teardown(PLACE, "run", "base", retry_delays_s=(0, 0))
    assert set(report.deleted) == {made.endpoint, made.model}


def test_leftovers_of_one_run_are_not_those_of_a_run_with_a_like_name(start):
    start(slots=2)
    deploy(run="nightly")
    deploy(run="nightly-2")
    assert {one.run for one in vertex.leftovers(PLACE, "nightly")} == {"nightly"}
    assert {one.run for one in vertex.leftovers(PLACE)} == {"nightly", "nightly-2"}


def test_a_secret_is_read_by_name_and_given_to_the_deploy_alone(start, tmp_path, bearer):
    name = "projects/p/secrets/hub/versions/latest"
    (tmp_path / "token").write_text("hf_planted\n")
    server = start(secrets={name: tmp_path / "token"})
    made = vertex.deploy(PLACE, "run", spec().model_copy(update={"hf_token_secret": name}))
    shown = [httpx.get(f"{server.url}/v1/{one}", headers=bearer()).text for one in (made.endpoint, made.model)]
    logs = [file.read_text() for file in server.settings.state_dir.rglob("*") if file.is_file()]
    assert not any("hf_planted" in text for text in (*shown, *logs))


def test_a_secret_that_is_not_there_is_named(server):
    absent = spec().model_copy(update={"hf_token_secret": "projects/p/secrets/none/versions/1"})
    with pytest.raises(ServiceError, match="projects/p/secrets/none/versions/1") as caught:
        vertex.deploy(PLACE, "run", absent)
    assert caught.value.kind == "not-found"


def test_no_token_to_be_had_is_an_authentication_error(order):
    endpoint = deploy().endpoint
    order("token-server-down", times=None, status=400)
    supplier = vertex.TokenSupplier()
    with pytest.raises(ServiceError) as caught:
        supplier()
    assert caught.value.kind == "authentication"
    assert "gcloud auth application-default login" in caught.value.hint
    assert vertex.chat_base_url(endpoint).endswith(endpoint)


def test_no_credentials_at_all_is_an_authentication_error(server, monkeypatch, tmp_path):
    monkeypatch.setenv("GOOGLE_APPLICATION_CREDENTIALS", str(tmp_path / "none.json"))
    with pytest.raises(ServiceError) as caught:
        deploy()
    assert caught.value.kind == "authentication"
    report = vertex.teardown(PLACE, "run", "base")
    assert len(report.left) == 2


def test_tokens_are_renewed_before_they_end(start, until):
    server = start(token_lifetime_s=3)
    tokens = vertex.TokenSupplier()
    seen = set()

    def three_tokens():
        answer = httpx.get(f"{server.url}/local/state", headers={"Authorization": f"Bearer {tokens()}"})
        assert answer.status_code == 200
        seen.add(answer.request.headers["Authorization"])
        return len(seen) == 3

    until(three_tokens)


def test_a_refused_token_is_replaced(server, bearer):
    tokens = vertex.TokenSupplier()
    first = tokens()
    assert tokens() == first
    tokens.refused(first)
    assert tokens() != first
