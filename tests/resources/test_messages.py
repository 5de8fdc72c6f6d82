"""Queues that templates ask for, and those that are told of a stack's events."""

from __future__ import annotations

import json

import pytest

from stoker.model.errors import Invalid
from stoker.store import queues
from support.templates import define, template


def queue(**properties):
    return define("OS::Zaqar::Queue", **properties)


def found(heat, name):
    return heat.read(queues.find, heat.project, name)


def test_a_queue_lives_as_long_as_its_resource(heat):
    href = {"o": {"value": {"get_attr": ["q", "href"]}}}
    said = template({"q": queue(name="mine", metadata={"a/b~1": 1})}, outputs=href)
    stack = heat.create(said)
    assert heat.outputs(stack)["o"] == "http://stoker.test/messaging/v2/queues/mine"
    assert found(heat, "mine").metadata == {"a/b~1": 1}
    stack = heat.update(stack, template({"q": queue(name="mine", metadata={"a/b~1": 2})}))
    assert found(heat, "mine").metadata == {"a/b~1": 2}
    assert heat.resources(stack)["q"].physical_id == "mine"
    heat.delete(stack)
    assert found(heat, "mine") is None


def test_a_queue_without_a_name_gets_one_and_an_invalid_name_is_the_reason_of_the_failure(heat):
    stack = heat.create(template({"q": queue()}))
    assert found(heat, heat.resources(stack)["q"].physical_id) is not None
    stack = heat.create(template({"q": queue(name="no queue")}), "invalid")
    assert "is not a valid queue name" in stack.reason


def test_a_signed_queue_url_has_the_attributes_of_a_signature(heat):
    url = define("OS::Zaqar::SignedQueueURL", queue={"get_resource": "q"}, methods=["GET", "DELETE"], ttl=60)
    names = ("signature", "expires", "paths", "methods", "project", "query_str")
    outputs = {name: {"value": {"get_attr": ["url", name]}} for name in names}
    said = heat.outputs(heat.create(template({"q": queue(name="mine"), "url": url}, outputs=outputs)))
    assert said["paths"] == ["/v2/queues/mine/messages"]
    assert said["methods"] == ["DELETE", "GET"]
    assert said["project"] == heat.project
    assert f"signature={said['signature']}" in said["query_str"]
    assert "queue_name=mine" in said["query_str"]


def test_a_subscription_needs_a_supported_subscriber(heat):
    told = define(
        "OS::Zaqar::Subscription", queue_name={"get_resource": "q"}, subscriber="http://127.0.0.1:9/", options={"a": 1}
    )
    stack = heat.create(template({"q": queue(name="mine"), "told": told}))
    assert str(stack.status) == "COMPLETE"
    told["properties"]["subscriber"] = "mailto:me@example.org"
    stack = heat.update(stack, template({"q": queue(name="mine"), "told": told}))
    assert "by mail" in stack.reason
    heat.delete(stack)


SINK = {"type": "zaqar-queue", "target": "events", "ttl": 120}


def test_every_event_goes_to_the_sinks(heat):
    def happened():
        payloads = [each["payload"] for each in heat.messages("events")]
        return [(payload["resource_name"], payload["resource_action"]) for payload in payloads]

    files = {"inner.yaml": json.dumps(template({"value": define("OS::Heat::Value", value=1)}))}
    stack = heat.create(template({"inner": {"type": "inner.yaml"}}), files=files, environment={"event_sinks": [SINK]})
    told = heat.messages("events")
    assert {each["type"] for each in told} == {"os.heat.event"}
    assert ("inner", "CREATE") in happened()
    assert ("value", "CREATE") in happened(), "also of stacks inside"
    assert {event.id for event in heat.stored_events(stack)} <= {each["id"] for each in told}
    heat.delete(stack)
    assert ("s", "DELETE") in happened()


@pytest.mark.parametrize(
    "sink",
    [
        "events",
        {},
        {"type": "pigeon", "target": "events"},
        {"type": "zaqar-queue"},
        {"type": "zaqar-queue", "target": "no queue"},
        {**SINK, "ttl": 1},
        {**SINK, "ttl": "120"},
        {**SINK, "color": 1},
    ],
)
def test_an_invalid_event_sink_is_refused(heat, sink):
    with pytest.raises(Invalid, match="event_sinks"):
        heat.create(template({}), environment={"event_sinks": [sink]})
