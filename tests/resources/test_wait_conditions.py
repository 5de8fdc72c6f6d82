"""Resources that wait: for signals from outside, for time."""

from __future__ import annotations

import json

import pytest

from stoker.model.errors import Invalid, StackValidationFailed
from stoker.model.stack import Action
from stoker.resources.base import WAKE
from support.clock import Clock
from support.stacks import tell
from support.templates import HANDLE, define, template, wait


def waiting(count=1):
    return template(
        {"handle": HANDLE, "condition": wait(count=count)},
        outputs={"data": {"value": {"get_attr": ["condition", "data"]}}},
    )


def say(heat, stack, **details):
    tell(heat, stack, "handle", **details)
    return heat.settled(stack.id)


def later(heat, monkeypatch):
    """What was set for a time is run, at that time."""
    Clock(max(at for kind, _, _, at in heat.work.jobs if kind == WAKE), monkeypatch)
    heat.work.run(WAKE)
    monkeypatch.undo()


def test_a_condition_waits_for_its_count_of_signals_with_different_ids(heat):
    stack = heat.create(waiting(3))
    say(heat, stack, data="one")
    for _ in range(2):
        stack = say(heat, stack, id="second", data={"a": 1}, reason="well")
        assert heat.states(stack)["condition"] == "CREATE_IN_PROGRESS"
    stack = say(heat, stack, id="third", data=3)
    assert str(stack.status) == "COMPLETE"
    assert json.loads(heat.outputs(stack)["data"]) == {"1": "one", "second": {"a": 1}, "third": 3}
    assert heat.work.jobs == []
    assert ("handle", "SIGNAL_COMPLETE") in heat.events(stack)


def test_a_failure_signal_fails_the_condition_at_once(heat):
    stack = heat.create(waiting(3))
    say(heat, stack)
    stack = say(heat, stack, status="FAILURE", reason="no disk")
    assert stack.reason == "Resource CREATE failed: Error: resources.condition: no disk"


def test_a_timeout_reports_the_number_of_signals(heat, monkeypatch):
    stack = heat.create(waiting(2))
    say(heat, stack)
    later(heat, monkeypatch)
    stack = heat.settled(stack.id)
    assert stack.reason.endswith("resources.condition: 1 of 2 received - Signal 1 received")


def test_an_early_check_does_not_end_the_wait(heat):
    stack = heat.create(waiting())
    heat.work.run(WAKE)
    assert str(heat.settled(stack.id).status) == "IN_PROGRESS"


def test_signals_before_the_condition_count(heat):
    stack = heat.create(waiting())
    stack = say(heat, stack)
    stack = heat.update(stack, waiting(2))
    assert heat.states(stack)["condition"] == "UPDATE_IN_PROGRESS"
    assert str(say(heat, stack).status) == "COMPLETE"


@pytest.mark.parametrize("details", [{"status": "PERHAPS"}, {"color": 1}, {"Status": "SUCCESS"}])
def test_invalid_signals_are_refused(heat, details):
    stack = heat.create(waiting())
    with pytest.raises(Invalid, match="signal"):
        say(heat, stack, **details)
    assert heat.resources(stack)["handle"].metadata == {}


def test_unavailable_transports_are_named(heat):
    said = template({"h": define("OS::Heat::WaitConditionHandle", signal_transport="PIGEON")})
    with pytest.raises(StackValidationFailed, match=r'PIGEON.*"TOKEN_SIGNAL", "CFN_SIGNAL"'):
        heat.create(said)


def test_a_delay_resource_waits(heat, monkeypatch):
    delay = define("OS::Heat::Delay", min_wait=5, max_jitter=1, actions=["CREATE", "DELETE"])
    stack = heat.create(template({"it": delay}))
    assert str(stack.status) == "IN_PROGRESS"
    later(heat, monkeypatch)
    assert str(heat.settled(stack.id).status) == "COMPLETE"
    assert str(heat.visit(stack, Action.SUSPEND).status) == "COMPLETE"
    assert str(heat.delete(stack).status) == "IN_PROGRESS"
    later(heat, monkeypatch)
    assert heat.settled(stack.id).deleted_at is not None


def thing(**properties):
    return template(
        {"it": define("OS::Heat::TestResource", **properties)},
        outputs={"o": {"value": {"get_attr": ["it", "output"]}}},
    )


def test_a_test_resource_waits_and_fails_as_configured(heat, monkeypatch):
    stack = heat.create(thing(value="a", action_wait_secs={"update": 5}))
    assert heat.outputs(stack) == {"o": "a"}
    stack = heat.update(stack, thing(value="b", action_wait_secs={"update": 5}, fail=True))
    assert str(stack.status) == "IN_PROGRESS"
    later(heat, monkeypatch)
    assert heat.settled(stack.id).reason == "Resource UPDATE failed: Error: resources.it: Test Resource failed it"


def test_a_test_resource_is_replaced_as_configured(heat):
    stack = heat.create(thing(value="a"))
    before = heat.resources(stack)["it"].id
    stack = heat.update(stack, thing(value="b"))
    assert heat.resources(stack)["it"].id == before
    stack = heat.update(stack, thing(value="c", update_replace=True))
    assert heat.resources(stack)["it"].id != before


LOGIN = ("auth_url", "username", "user_id", "password", "project_id", "domain_id", "region_name")


@pytest.mark.parametrize(
    ("transport", "keys"),
    [
        ("TEMP_URL_SIGNAL", {"alarm_url"}),
        ("ZAQAR_SIGNAL", {*LOGIN, "queue_id"}),
        ("CFN_SIGNAL", {"alarm_url"}),
        ("HEAT_SIGNAL", {*LOGIN, "alarm_url"}),
        ("NO_SIGNAL", set()),
    ],
)
def test_a_handle_shows_its_signal_url(heat, transport, keys):
    resources = {"handle": define("OS::Heat::WaitConditionHandle", signal_transport=transport)}
    outputs = {name: {"value": {"get_attr": ["handle", name]}} for name in ("signal", "token", "endpoint")}
    said = heat.outputs(heat.create(template(resources, outputs=outputs)))
    assert json.loads(said["signal"]).keys() == keys
    assert said["token"] is said["endpoint"] is None


def test_a_handle_with_any_name_has_a_url_and_a_complete_curl_command(heat):
    name = "a b?c;d☃"
    outputs = {key: {"value": {"get_attr": [name, key]}} for key in ("endpoint", "curl_cli")}
    stack = heat.create(template({name: {"type": "OS::Heat::WaitConditionHandle"}}, outputs=outputs))
    shown = heat.outputs(stack)
    path = f"/v1/p/stacks/s/{stack.id}/resources/a%20b%3Fc%3Bd%E2%98%83/signal"
    assert shown["endpoint"].endswith(path)
    assert shown["curl_cli"].endswith(shown["endpoint"])
    token = heat.engine.env.signal_tokens.token(heat.resources(stack)[name].id)
    assert f"X-Auth-Token: {token}" in shown["curl_cli"]
