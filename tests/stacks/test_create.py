"""Creating: order, values that flow, failure."""

from __future__ import annotations

import json

import pytest

from stoker.model.errors import StackExists, StackValidationFailed
from stoker.servers import enrollment
from stoker.stacks import export
from stoker.stacks.operations import Options
from stoker.store import configs, stacks
from support import query
from support.stacks import world
from support.templates import chain, config, define, deployment, on, server, template


def test_dependents_begin_after_the_signal_and_a_repeated_one_changes_nothing(heat):
    stack = heat.create(chain(2))
    assert heat.states(stack) == {
        "config": "CREATE_COMPLETE",
        "server": "CREATE_COMPLETE",
        "d0": "CREATE_IN_PROGRESS",
        "d1": "INIT_COMPLETE",
    }

    stack = heat.signal(stack, "d0", result="first")
    states = heat.states(stack)
    assert states["d1"] == "CREATE_IN_PROGRESS"
    stack = heat.signal(stack, "d0", result="second", deploy_status_code=1)
    assert heat.states(stack) == states
    assert heat.deployments()[0].output_values["result"] == "first"
    assert heat.signal(stack, "d1").reason == "Stack CREATE completed successfully"


def test_outputs_become_inputs_of_dependents(heat):
    resources = {
        "config": config(inputs=("given",), outputs=("result",)),
        "server": server(),
        "first": deployment(input_values={"given": "seed"}),
        "second": deployment(input_values={"given": {"get_attr": ["first", "result"]}}),
    }
    outputs = {"last": {"value": {"get_attr": ["second", "result"]}}}
    stack = heat.create(template(resources, outputs=outputs))
    heat.signal(stack, "first", result="grown")

    run = heat.entry(heat.resources(stack)["server"].physical_id)
    assert {"name": "given", "type": "String", "description": "", "value": "grown"} in run["inputs"]

    heat.signal(stack, "second", result=["any", "json"])
    assert heat.outputs(stack) == {"last": ["any", "json"]}


def test_independent_resources_run_concurrently_and_end_after_a_failure_of_the_stack(heat):
    resources = {"config": config(), "server": server(), "good": deployment(), "bad": deployment()}
    stack = heat.create(template(resources))
    assert [heat.states(stack)[name] for name in ("good", "bad")] == ["CREATE_IN_PROGRESS"] * 2
    heat.signal(stack, "bad", deploy_status_code=1)
    stack = heat.signal(stack, "good")

    assert heat.states(stack)["good"] == "CREATE_COMPLETE"
    assert stack.status == "FAILED"


def test_without_a_signal_the_whole_chain_is_one_transaction(heat):
    stack = heat.create(chain(5, signal_transport="NO_SIGNAL"))

    assert (stack.action, stack.status) == ("CREATE", "COMPLETE")
    assert len(heat.to_run(heat.resources(stack)["server"].physical_id)) == 5
    assert heat.work.jobs == []


def test_a_failed_deployment_fails_the_stack_and_stops_its_dependents(heat):
    stack = heat.create(chain(3))
    stack = heat.signal(stack, "d0", deploy_status_code=3, deploy_stderr="no disk")

    assert stack.reason == (
        "Resource CREATE failed: Error: resources.d0: Deployment to server failed: "
        "deploy_status_code : Deployment exited with non-zero status code: 3 on machine: no disk"
    )
    assert heat.states(stack)["d1"] == "INIT_COMPLETE"
    assert heat.work.jobs == []


def test_two_live_stacks_never_share_a_name(heat):
    first = heat.create(template({}))
    with pytest.raises(StackExists):
        heat.create(template({}))
    heat.delete(first)
    assert heat.create(template({})).status == "COMPLETE"


def test_an_invalid_request_changes_nothing(heat):
    bad = template({"config": config(), "server": server(), "d": deployment(signal_transport="PIGEON")})
    with pytest.raises(StackValidationFailed, match=r"resources\.d\.properties: signal_transport: 'PIGEON'"):
        heat.create(bad)
    assert heat.read(stacks.find_by_name, "s", "p") is None


def test_events_are_in_order(heat):
    stack = heat.create(template({"value": define("OS::Heat::Value", value=1)}))

    assert heat.events(stack) == [
        ("s", "CREATE_IN_PROGRESS"),
        ("value", "CREATE_IN_PROGRESS"),
        ("value", "CREATE_COMPLETE"),
        ("s", "CREATE_COMPLETE"),
    ]


@pytest.mark.parametrize(
    ("report", "reason"),
    [
        ({}, "state changed"),
        ({"deploy_changed": False}, "nothing changed"),
        ({"deploy_changed": True}, "changed"),
        ({"deploy_changed": True, "deploy_changes": [{"item": "/a", "outcome": "changed"}] * 3}, "changed 3 items"),
        (
            {
                "deploy_changed": True,
                "deploy_changes": [{"item": "/a", "outcome": "changed"}, {"item": "7 more", "outcome": "omitted"}],
            },
            "changed 8 items",
        ),
    ],
)
def test_the_event_of_a_deployment_says_what_its_run_changed(heat, report, reason):
    stack = heat.create(template({"config": config(), "server": server(), "d": deployment()}))
    stack = heat.signal(stack, "d", **report)

    assert heat.resources(stack)["d"].reason == reason
    ended = [event for event in heat.stored_events(stack) if (event.resource_name, event.status) == ("d", "COMPLETE")]
    assert ended[-1].reason == reason


def test_resources_that_a_failed_create_did_not_reach_are_listed_unless_it_is_rolled_back(heat):
    value = define("OS::Heat::Value", value=1)
    resources = {
        "bad": define("OS::Heat::TestResource", fail=True),
        "next": {**value, "depends_on": "bad"},
        "last": define("OS::Heat::Value", value={"get_resource": "next"}),
    }
    stack = heat.create(template(resources), options=Options(disable_rollback=False))
    assert (stack.action, str(stack.status), heat.resources(stack)) == ("ROLLBACK", "COMPLETE", {})
    stack = heat.create(template(resources), name="again")
    assert heat.states(stack) == {"bad": "CREATE_FAILED", "next": "INIT_COMPLETE", "last": "INIT_COMPLETE"}
    assert {name: set(each.requires) for name, each in heat.resources(stack).items()} == {
        "bad": set(),
        "next": {"bad"},
        "last": {"next"},
    }
    resources["bad"]["properties"]["fail"] = False
    stack = heat.update(stack, template(resources))
    assert set(heat.states(stack).values()) == {"CREATE_COMPLETE"}


def test_a_deployment_may_name_an_enrolled_server(heat):
    enrolled = heat.store.write(lambda tx: enrollment.enroll(tx, heat.project, "web1")[0])
    heat.store.write(lambda tx: enrollment.enroll(tx, "another project", "web2"))
    heat.create(template({"config": config(), "known": on("web1"), "unknown": on("web2")}))
    assert {made.server_id for made in heat.deployments()} == {enrolled.id, "web2"}


def test_a_reason_repeats_only_the_beginning_of_a_long_value(heat):
    stack = heat.create(template({"d": define("OS::Heat::SoftwareDeployment", config="x" * 9000, server="s")}))
    assert stack.status == "FAILED"
    assert "xxx" in stack.reason
    assert len(stack.reason) < 2000


def test_a_large_stack_is_created_in_parts_between_which_others_write(store, monkeypatch):
    heat, parts, write = world(store, steps=100), [], store.write

    def record(do, *, background=False, **how):
        result = write(do, background=background, **how)
        if background:  # other writes precede the next part
            parts.append(heat.read(query.scalar, "SELECT count(*) FROM resources WHERE action = 'CREATE'"))
        return result

    monkeypatch.setattr(store, "write", record)
    heat.create(template({f"r{number}": define("OS::Heat::Value", value="x") for number in range(350)}))
    assert parts == [200, 300, 350]


def test_an_object_of_a_stack_cannot_be_adopted(heat):
    queue = heat.create(template({"queue": define("OS::Zaqar::Queue")}), "queues")
    exported = heat.read(export.export, queue)
    assert "belongs to a stack" in heat.create(exported["template"], "other", adopt=exported["resources"]).reason

    stack = heat.create(template({"config": config()}))
    id = heat.resources(stack)["config"].physical_id
    reference = {"type": "OS::Heat::SoftwareConfig", "external_id": id}
    heat.create(template({"reference": reference}), "referring")
    exported = heat.read(export.export, stack)

    copy = heat.create(exported["template"], "copy", adopt=exported["resources"])
    assert copy.status == "FAILED"
    assert f"The OS::Heat::SoftwareConfig ({id}) cannot be adopted" in copy.reason
    heat.delete(copy)
    assert heat.read(configs.find, id) is not None

    left = heat.store.write(lambda tx: export.abandon(tx, heat.engine, stack.id))
    assert heat.create(left["template"], "adopting", adopt=left["resources"]).status == "COMPLETE"


def test_the_deletion_of_an_incomplete_adoption_leaves_what_it_has_adopted(heat):
    inner = template({"config": config(), "server": server(), "d": deployment(actions=["CREATE", "DELETE"])})
    outer = {"inner": define("inner.yaml"), "last": {**server(), "depends_on": "inner"}}
    stack = heat.complete(heat.create(template(outer), files={"inner.yaml": json.dumps(inner)}))
    data = heat.store.write(lambda tx: export.abandon(tx, heat.engine, stack.id))
    lost = {**data["resources"], "last": {**data["resources"]["last"], "resource_id": "lost"}}

    failed = heat.create(data["template"], "failed", adopt=lost, files=data["files"])
    assert (failed.status, heat.states(heat.nested(failed, "inner"))["d"]) == ("FAILED", "ADOPT_COMPLETE")
    assert heat.delete(failed).status == "COMPLETE"
    assert heat.running() == []

    adopted = heat.create(data["template"], "adopted", adopt=data["resources"], files=data["files"])
    assert adopted.status == "COMPLETE"
    heat.delete(adopted)
    assert [deployment.action for deployment in heat.running()] == ["DELETE"]
