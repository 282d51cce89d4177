"""Local Vertex as Google's generated clients see it: deploy, operations, endpoints, models."""

from __future__ import annotations

import pytest
from google.api_core import exceptions
from google.cloud import aiplatform_v1, aiplatform_v1beta1

PLACE = "projects/p/locations/us-central1"


def client(kind, server):
    """A generated client with nothing but the address and the transport set: credentials are the default ones."""
    return kind(client_options={"api_endpoint": server.url}, transport="rest")


def request(name, *args, api=aiplatform_v1, image="tiny"):
    return api.DeployRequest(
        destination=PLACE,
        hugging_face_model_id="owner/name",
        model_config=api.DeployRequest.ModelConfig(
            model_user_id=name,
            container_spec=api.ModelContainerSpec(
                image_uri=image, args=args, env=[api.EnvVar(name="SECRET", value="planted")]
            ),
        ),
        endpoint_config=api.DeployRequest.EndpointConfig(endpoint_user_id=name),
    )


@pytest.mark.parametrize("api", [aiplatform_v1, aiplatform_v1beta1])
def test_deploy_makes_an_endpoint_with_a_model(server, api):
    operation = client(api.ModelGardenServiceClient, server).deploy(request("one", api=api))
    result = operation.result(timeout=60)
    assert isinstance(result, api.DeployResponse)
    assert (result.endpoint, result.model) == (f"{PLACE}/endpoints/one", f"{PLACE}/models/one")
    assert operation.metadata.model_id == "one"
    endpoint = client(api.EndpointServiceClient, server).get_endpoint(name=result.endpoint)
    assert [deployed.model for deployed in endpoint.deployed_models] == [result.model]
    assert endpoint.dedicated_endpoint_enabled
    assert endpoint.dedicated_endpoint_dns.startswith("one.us-central1-")
    model = client(api.ModelServiceClient, server).get_model(name=result.model)
    assert model.container_spec.image_uri == "tiny"
    assert "planted" not in str(model)


def test_undeploy_and_delete_leave_nothing(server, processes_with):
    made = (
        client(aiplatform_v1.ModelGardenServiceClient, server).deploy(request("gone", "--mark-gone")).result(timeout=60)
    )
    endpoints = client(aiplatform_v1.EndpointServiceClient, server)
    models = client(aiplatform_v1.ModelServiceClient, server)
    deployed = endpoints.get_endpoint(name=made.endpoint).deployed_models[0].id
    assert processes_with("--mark-gone")
    with pytest.raises(exceptions.BadRequest, match="deployed models"):
        endpoints.delete_endpoint(name=made.endpoint)
    with pytest.raises(exceptions.BadRequest, match="is deployed"):
        models.delete_model(name=made.model)
    endpoints.undeploy_model(endpoint=made.endpoint, deployed_model_id=deployed).result(timeout=60)
    assert not processes_with("--mark-gone")
    endpoints.delete_endpoint(name=made.endpoint).result(timeout=60)
    models.delete_model(name=made.model).result(timeout=60)
    assert not list(endpoints.list_endpoints(parent=PLACE))
    assert not list(models.list_models(parent=PLACE))
    with pytest.raises(exceptions.NotFound):
        endpoints.get_endpoint(name=made.endpoint)


def test_lists_are_filtered_by_label(start):
    server = start(slots=2)
    garden = client(aiplatform_v1.ModelGardenServiceClient, server)
    endpoints = client(aiplatform_v1.EndpointServiceClient, server)
    models = client(aiplatform_v1.ModelServiceClient, server)
    for name in ("red", "blue"):
        made = garden.deploy(request(name)).result(timeout=60)
        endpoint, model = aiplatform_v1.Endpoint(name=made.endpoint), aiplatform_v1.Model(name=made.model)
        endpoint.labels["colour"] = model.labels["colour"] = name
        endpoints.update_endpoint(endpoint=endpoint, update_mask="labels")
        models.update_model(model=model, update_mask="labels")

    def listed(expression):
        query = {"parent": PLACE, "filter": expression}
        return [
            [one.name.rsplit("/")[-1] for one in found]
            for found in (endpoints.list_endpoints(request=query), models.list_models(request=query))
        ]

    assert listed("labels.colour=red") == [["red"], ["red"]]
    assert listed('labels.colour="blue" AND display_name="blue"') == [["blue"], ["blue"]]
    assert listed("labels.colour:*") == [["blue", "red"]] * 2
    assert listed("labels.taste:*") == [[], []]
    with pytest.raises(exceptions.BadRequest, match="filter"):
        listed("colour is red")


def test_a_deploy_waits_for_a_free_machine(server):
    garden = client(aiplatform_v1.ModelGardenServiceClient, server)
    endpoints = client(aiplatform_v1.EndpointServiceClient, server)
    first = garden.deploy(request("first")).result(timeout=60)
    second = garden.deploy(request("second"))
    waited = garden.transport.operations_client.get_operation(second.operation.name)
    assert not waited.done
    assert not endpoints.get_endpoint(name=f"{PLACE}/endpoints/second").deployed_models
    deployed = endpoints.get_endpoint(name=first.endpoint).deployed_models[0].id
    endpoints.undeploy_model(endpoint=first.endpoint, deployed_model_id=deployed).result(timeout=60)
    assert second.result(timeout=60).endpoint == f"{PLACE}/endpoints/second"


@pytest.mark.parametrize("begun", [False, True])
def test_a_cancelled_deploy_gives_its_machine_back(server, processes_with, until, begun):
    garden = client(aiplatform_v1.ModelGardenServiceClient, server)
    hanging = request("hanging", "--mark-cancel", "--deaf")
    operation = garden.deploy(hanging)
    if begun:
        until(lambda: processes_with("--mark-cancel"))
    garden.cancel_operation({"name": operation.operation.name})
    with pytest.raises(exceptions.Cancelled):
        operation.result(timeout=60)
    assert not processes_with("--mark-cancel")
    assert garden.deploy(request("next")).result(timeout=60)
    left = client(aiplatform_v1.EndpointServiceClient, server).get_endpoint(name=f"{PLACE}/endpoints/hanging")
    assert not left.deployed_models


def test_an_engine_that_crashes_at_load_says_why(server):
    operation = client(aiplatform_v1.ModelGardenServiceClient, server).deploy(request("crash", "--crash"))
    with pytest.raises(exceptions.GoogleAPICallError, match="vocabulary 32000 against 49152"):
        operation.result(timeout=60)


def test_an_engine_that_never_serves_ends_at_the_time_out(server, processes_with):
    slow = request("slow", "--mark-slow", "--deaf")
    slow.model_config.container_spec.deployment_timeout = {"seconds": 1}
    operation = client(aiplatform_v1.ModelGardenServiceClient, server).deploy(slow)
    with pytest.raises(exceptions.GatewayTimeout, match="not healthy after 1 s"):
        operation.result(timeout=60)
    assert not processes_with("--mark-slow")


@pytest.mark.parametrize(
    ("wrong", "error", "message"),
    [
        ({"image": "unknown-image"}, exceptions.BadRequest, "container image unknown-image"),
        ({"name": "Not-An-Id"}, exceptions.BadRequest, "Invalid user id"),
        ({"name": "x" * 64}, exceptions.BadRequest, "Invalid user id"),
    ],
)
def test_what_can_not_be_deployed_is_refused_at_once(server, wrong, error, message):
    with pytest.raises(error, match=message):
        client(aiplatform_v1.ModelGardenServiceClient, server).deploy(request(**{"name": "right", **wrong}))


def test_an_id_that_is_taken_is_refused(server):
    garden = client(aiplatform_v1.ModelGardenServiceClient, server)
    garden.deploy(request("twice"))
    with pytest.raises(exceptions.Conflict, match="already exists"):
        garden.deploy(request("twice"))


def test_operations_are_listed_waited_for_and_deleted(server):
    garden = client(aiplatform_v1.ModelGardenServiceClient, server)
    name = garden.deploy(request("op")).operation.name
    assert garden.wait_operation({"name": name, "timeout": {"seconds": 60}}).done
    assert [operation.name for operation in garden.list_operations({"name": PLACE}).operations] == [name]
    garden.delete_operation({"name": name})
    with pytest.raises(exceptions.NotFound):
        garden.get_operation({"name": name})
