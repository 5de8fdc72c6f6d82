"""How results come to deployments that no resource stands behind, by every transport; and what goes with them."""

from __future__ import annotations

import json
from urllib.parse import parse_qs, urlsplit

import pytest

from stoker.deployments import service
from stoker.identity import stack_users
from stoker.messaging import Messaging, SignedUrls
from stoker.messaging.service import Draft
from stoker.messaging.subscription_service import SubscriptionService
from stoker.messaging.webhook_client import Targets
from stoker.model.errors import EntityNotFound, Invalid
from stoker.model.server import Kind
from stoker.objects import operations
from stoker.objects.operations import WriteCallbacks
from stoker.stacks import signals
from stoker.stacks.signals import InboundSignals
from stoker.store import configs, deployments, objects, queues, runs, site

NAMES = ("CFN_SIGNAL", "HEAT_SIGNAL", "STOKER_SIGNAL", "TEMP_URL_SIGNAL", "ZAQAR_SIGNAL")
RESULT = {"deploy_stdout": "out", "deploy_stderr": "", "deploy_status_code": 0, "size": "5"}


@pytest.fixture
def one(fleet):
    """A trigger on one server by some transport."""

    def make(transport, **said):
        (server,) = fleet.servers(1)
        config = fleet.config(outputs=[{"name": "size"}])
        trigger = fleet.trigger(config_id=config, servers=[server.id], signal_transport=transport, **said)
        return trigger, fleet.deployment(fleet.targets(trigger)[0])

    return make


def stores(fleet):
    """The embedded ones, which tell who comes."""
    work, arrivals = fleet.world.work, InboundSignals(fleet.world.engine)
    callbacks = WriteCallbacks(arrivals.before_object, arrivals.object)
    subscriptions = SubscriptionService(Targets.of(""))
    messaging = Messaging(work, subscriptions, SignedUrls(b"secret"), arrivals.message)
    return callbacks, messaging


def post(messaging, tx, queue, body):
    return messaging.receive(tx, "p", queue, [Draft(body, ttl=60)], size=100, client_id="c", as_owner=True)


def place_of(inputs):
    container, name = urlsplit(inputs["deploy_signal_id"]).path.split("/")[-2:]
    return "p", container, name


def arrive(fleet, transport, deployment, said):
    """As the transport brings it."""
    callbacks, messaging = stores(fleet)
    write, inputs = fleet.world.store.write, fleet.world.inputs_of(deployment)
    match transport:
        case "TEMP_URL_SIGNAL":
            place, data = place_of(inputs), json.dumps(said).encode()
            write(lambda tx: operations.put(tx, *place, data, callbacks=callbacks, as_owner=True))
        case "ZAQAR_SIGNAL":
            write(lambda tx: post(messaging, tx, inputs["deploy_queue_id"], said))
        case "STOKER_SIGNAL":
            fleet.world.report(deployment, **said)
        case _:
            run = parse_qs(urlsplit(inputs["deploy_signal_id"]).query)["run"][0]
            write(lambda tx: signals.deliver(tx, fleet.world.engine, deployment, said, number=run))


@pytest.mark.parametrize("transport", ["CFN_SIGNAL", "HEAT_SIGNAL"])
def test_upstream_agents_get_a_signal_url(fleet, one, transport):
    _, made = one(transport)
    values = fleet.world.inputs_of(made)
    assert values["deploy_signal_verb"] == "POST"
    url = urlsplit(values["deploy_signal_id"])
    assert url.path == f"/v1/p/software_deployments/{made.id}/signal"
    token = parse_qs(url.query)["token"][0]
    assert fleet.world.engine.env.signal_tokens.resource_of(token) == made.id
    assert "deploy_auth_url" not in values


def test_the_stack_user_of_a_queue_belongs_to_the_deployment(fleet, one):
    _, made = one("ZAQAR_SIGNAL")
    values = fleet.world.inputs_of(made)
    assert values["deploy_queue_id"] == f"{made.id}-1"
    user = fleet.world.read(stack_users.find, values["deploy_user_id"])
    assert user is not None
    assert (user.resource_id, user.name) == (made.id, values["deploy_username"])
    fleet.do(service.remove, made)
    assert fleet.world.read(stack_users.find, values["deploy_user_id"]) is None


def test_auto_selects_a_transport_for_the_server(fleet):
    config = fleet.config()
    (own,), (deployed_one,) = fleet.servers(1), fleet.servers(1, kind=Kind.DEPLOYED, key_generation=0)
    (enrolled,) = fleet.servers(1, kind=Kind.DEPLOYED, key_generation=1)
    for said in ({}, {"signal_transport": "AUTO"}):
        trigger = fleet.trigger(config_id=config, servers=[own.id, deployed_one.id, enrolled.id], **said)
        names = [each.signal_transport for each in fleet.running(trigger)]
        assert names == ["STOKER_SIGNAL", "CFN_SIGNAL", "STOKER_SIGNAL"]


@pytest.mark.parametrize(
    "data",
    [
        b"[1]",
        b'"[1]"',
        b"{",
        b'{"deploy_stdout": "\\ud800"}',
        b'{"deploy_stdout": "\xff"}',
        b'{"a":' + b"[" * 500 + b"]" * 500 + b"}",
        b'{"a":' + b"[" * 100_000,
        b'{"a": NaN}',
    ],
    ids=["list", "list in a string", "no end", "surrogate", "no UTF-8", "deep", "deep and no end", "no number"],
)
@pytest.mark.parametrize("transport", ["TEMP_URL_SIGNAL", "ZAQAR_SIGNAL", "elsewhere"])
def test_an_invalid_signal_is_refused_and_ends_nothing(fleet, one, transport, data):
    trigger, made = one("TEMP_URL_SIGNAL" if transport == "elsewhere" else transport)
    callbacks, messaging = stores(fleet)
    arrivals, name = InboundSignals(fleet.world.engine), f"{made.id}-1"
    send = {
        "TEMP_URL_SIGNAL": lambda tx: operations.put(tx, "p", made.id, name, data, callbacks=callbacks, as_owner=True),
        "ZAQAR_SIGNAL": lambda tx: post(messaging, tx, name, data.decode(errors="replace")),
        "elsewhere": lambda tx: arrivals.remote_result(tx, name, data),
    }
    if transport == "ZAQAR_SIGNAL" and b"\xff" in data:
        return  # a message is text
    with pytest.raises(Invalid, match="a signal "):
        fleet.world.store.write(send[transport])
    assert fleet.exact(trigger)["running"] == 1


def is_result_of(fleet, deployment, code):
    """Whether the outputs, the log and the last run of a deployment are of ``RESULT`` with this code."""
    with fleet.world.store.read() as tx:
        found = deployments.get(tx, deployment.id)
        output = [each.data for each in runs.page_output(tx, found.id, 0).chunks]
        last, *_ = runs.list_all(tx, found)
    assert (found.output_values["size"], found.output_values["deploy_stdout"]) == ("5", "out")
    assert output == ["out"] * last.number
    return (last.status, last.status_code) == (found.status, code)


def opened(fleet, deployment):
    """The container and the queues of the runs of a deployment that exist."""
    with fleet.world.store.read() as tx:
        found = [objects.find_container(tx, "p", deployment.id)]
        found += [queues.find(tx, "p", f"{deployment.id}-{number}") for number in (1, 2)]
        assert not site.orphaned_queues(tx) + site.orphaned_containers(tx) + site.orphaned_objects(tx)
    return [each.name.removeprefix(deployment.id) for each in found if each]


@pytest.mark.parametrize("transport", NAMES)
def test_a_result_ends_the_run_and_the_trigger_and_a_retried_run_has_its_own(fleet, one, transport):
    trigger, made = one(transport, timeout=60)
    assert opened(fleet, made) == {"TEMP_URL_SIGNAL": [""], "ZAQAR_SIGNAL": ["-1"]}.get(transport, [])
    assert fleet.world.inputs_of(made)["deploy_signal_transport"] == transport
    arrive(fleet, transport, made, {**RESULT, "deploy_status_code": 3})
    assert fleet.exact(trigger)["failed"] == 1
    assert is_result_of(fleet, made, "3")
    again = fleet.retry(made)
    assert fleet.exact(trigger)["running"] == 1
    after = fleet.world.inputs_of(again)
    assert after["deploy_signal_transport"] == transport
    if transport in ("CFN_SIGNAL", "HEAT_SIGNAL"):
        assert after["deploy_signal_id"].endswith("&run=2")
    arrive(fleet, transport, again, RESULT)
    assert fleet.exact(trigger)["complete"] == 1
    assert is_result_of(fleet, made, "0")
    with fleet.world.store.read() as tx:
        found = runs.list_all(tx, deployments.get(tx, made.id))
    assert [(each.number, each.status) for each in found] == [(2, "COMPLETE"), (1, "FAILED")]
    assert [each.requested_by for each in found] == ["bob", "ann"]
    fleet.delete(trigger)
    assert opened(fleet, made) == []
    with fleet.world.store.read() as tx:
        assert deployments.find(tx, made.id) is None
        for run in (made, again):
            with pytest.raises(EntityNotFound):
                configs.get(tx, run.config_id, "p")


def test_a_late_result_of_an_earlier_run_changes_nothing(fleet, one):
    trigger, made = one("CFN_SIGNAL")
    fleet.do(service.cancel, made, "bob")
    again = fleet.retry(made)

    def signal(run=None, **said):
        return fleet.world.store.write(
            lambda tx: signals.deliver(tx, fleet.world.engine, again, {**RESULT, **said}, number=run)
        )

    assert signal(run="1") == "IN_PROGRESS"
    assert signal(deploy_config_id=made.config_id) == "IN_PROGRESS"
    assert signal(run="x") == "IN_PROGRESS"
    with pytest.raises(EntityNotFound):
        fleet.world.report(made)
    assert fleet.exact(trigger)["running"] == 1
    assert signal(run="2", deploy_config_id=again.config_id) == "COMPLETE"
    assert fleet.exact(trigger)["complete"] == 1
