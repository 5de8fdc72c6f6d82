"""What a trigger means: sources in stacks, servers, inputs, names; and what is refused with which words."""

from __future__ import annotations

import json
from dataclasses import replace

import pytest

from stoker.deployments import service
from stoker.deployments.run_end import DEADLINE
from stoker.model.errors import EntityNotFound, Invalid, RequestLimitExceeded, UserParameterMissing
from stoker.servers.presence import store_facts
from stoker.stacks.engine import Limits
from stoker.store import configs, deployments, servers, stacks
from support.fleet import COMPONENT, Fleet
from support.stacks import world
from support.templates import VERSION, define, deployment_group, on


def template(**resources):
    return {"heat_template_version": VERSION, "resources": resources}


@pytest.fixture
def shop(fleet):
    """A component on three servers, with inputs of their own, all done."""
    names = [each.id for each in fleet.servers(3)]
    runs = {f"on{i}": on(id, "app", input_values={"target": f"disk{i}"}) for i, id in enumerate(names)}
    stack = fleet.world.create(template(app=COMPONENT, **runs), "shop")
    return fleet.world.complete(stack)


def unchanged(fleet, stack):
    """All of a stack that a trigger must leave alone."""
    with fleet.world.store.read() as tx:
        own = [each for each in deployments.list_all(tx, "p") if each.stack_id == stack.id]
        bodies = [configs.body(tx, each.config_id, "p") for each in own]
        return own, bodies, stacks.get(tx, stack.id), fleet.world.resources(stack), fleet.world.events(stack)


def test_a_components_action_is_triggered_at_any_level(fleet, shop):
    before = unchanged(fleet, shop)
    trigger = fleet.trigger(stack="shop", resource="app", action="BACKUP", input_values={"password": "y"})
    assert trigger.total == 3
    assert trigger.source == {"stack": "shop", "stack_id": shop.id, "resource": "app"}
    assert trigger.name == "app_BACKUP"
    own = {each.server_id: each for each in before[0]}
    for each in fleet.targets(trigger):
        made, original = fleet.deployment(each), own[each.server_id]
        derived, first = fleet.world.config_of(made), fleet.world.config_of(original)
        assert derived.name == f"{first.name}_BACKUP"
        assert (derived.group, derived.config, derived.outputs) == (first.group, first.config, first.outputs)
        values = fleet.world.inputs_of(made)
        assert values["target"] == original.input_values["target"]
        assert values["password"] == "y"
        assert (values["deploy_action"], values["deploy_server_id"]) == ("BACKUP", each.server_id)
        assert values["deploy_stack_id"] == f"shop/{shop.id}"
        assert json.loads(dict(fleet.world.to_run(each.server_id))[made.id])["id"] == made.config_id
        fleet.end(made, size="5")
    assert fleet.now(trigger).status == "COMPLETE"
    assert unchanged(fleet, shop) == before


def test_a_failed_trigger_leaves_its_stack_alone(fleet, shop):
    before = unchanged(fleet, shop)
    trigger = fleet.trigger(stack=shop.id, resource="app", action="VERIFY")
    for each in fleet.running(trigger):
        fleet.end(each, 1)
    assert fleet.now(trigger).status == "FAILED"
    fleet.delete(trigger)
    assert unchanged(fleet, shop) == before


def test_a_deployment_is_triggered_by_resource_and_by_id(fleet, shop):
    (one,) = [each for each in unchanged(fleet, shop)[0] if each.input_values == {"target": "disk1"}]
    for said in ({"stack": "shop", "resource": "on1"}, {"deployment_id": one.id}):
        trigger = fleet.trigger(**said, action="BACKUP")
        (made,) = fleet.running(trigger)
        assert (made.server_id, made.input_values) == (one.server_id, {"target": "disk1"})
    assert trigger.source["deployment_id"] == one.id
    assert trigger.stack_id == shop.id


def test_a_trigger_may_name_servers_with_and_without_a_deployment(fleet, shop):
    own = unchanged(fleet, shop)[0]
    trigger = fleet.trigger(stack="shop", resource="app", action="BACKUP", servers=[own[1].server_id, own[1].server_id])
    (made,) = fleet.running(trigger)
    assert (made.server_id, made.input_values) == (own[1].server_id, own[1].input_values)

    (other,) = fleet.servers(1)
    trigger = fleet.trigger(stack="shop", resource="app", action="BACKUP", servers=[other.name])
    (made,) = fleet.running(trigger)
    assert (made.server_id, made.input_values) == (other.id, {})
    assert fleet.world.inputs_of(made)["target"] == "disk"


def test_labels_select_among_the_servers_of_the_source(fleet):
    mine = fleet.servers(2, {"role": "db", "zone": "a"})
    fleet.servers(1, {"role": "db"})  # of somebody else
    runs = {f"on{i}": on(each.id, "app") for i, each in enumerate(mine)}
    fleet.world.create(template(app=COMPONENT, **runs), "shop")
    assert fleet.trigger(stack="shop", resource="app", action="BACKUP", labels={"role": "db"}).total == 2
    config = fleet.config()
    assert fleet.trigger(config_id=config, labels={"role": "db"}).total == 3
    trigger = fleet.trigger(config_id=config, labels={"role": "db", "zone": "a"})
    assert trigger.total == 2
    assert trigger.source["labels"] == {"role": "db", "zone": "a"}
    with pytest.raises(Invalid, match="no server has the labels role=web"):
        fleet.trigger(config_id=config, labels={"role": "web"})


def test_a_selector_selects_by_labels_and_facts(fleet):
    big, small = fleet.servers(2, {"role": "db"})
    (other,) = fleet.servers(1, {"role": "web"})
    for server, memory in ((big, 9000), (small, 100), (other, 9000)):
        fleet.world.store.write(lambda tx, id=server.id, mb=memory: store_facts(tx, id, {"memory_mb": mb}))
    config = fleet.config()
    trigger = fleet.trigger(config_id=config, selector="role=db and memory_mb>4096")
    assert [made.server_id for made in fleet.running(trigger)] == [big.id]
    assert trigger.source["selector"] == "role=db and memory_mb>4096"
    both = fleet.trigger(config_id=config, selector="memory_mb>4096", labels={"role": "web"})
    assert [made.server_id for made in fleet.running(both)] == [other.id]
    with pytest.raises(Invalid, match="no server matches the selector memory_mb>10000"):
        fleet.trigger(config_id=config, selector="memory_mb>10000")
    with pytest.raises(Invalid, match="the selector, column 5"):
        fleet.trigger(config_id=config, selector="role")
    with pytest.raises(Invalid, match="not both"):
        fleet.trigger(config_id=config, selector="role=db", servers=[big.id])


@pytest.mark.parametrize("kind", ["SoftwareDeploymentGroup", "SoftwareDeployments"])
def test_every_member_of_a_group_is_triggered(fleet, kind):
    ids = {f"m{i}": each.id for i, each in enumerate(fleet.servers(3))}
    group = define(f"OS::Heat::{kind}", config={"get_resource": "app"}, servers=ids, input_values={"target": "tape"})
    stack = fleet.world.create(template(app=COMPONENT, all=group), "many")
    for resource in ("all", "app"):
        trigger = fleet.trigger(stack="many", resource=resource, action="BACKUP")
        assert {each.server_id for each in fleet.targets(trigger)} == set(ids.values())
        assert {each.input_values["target"] for each in fleet.running(trigger)} == {"tape"}
    (inner,) = fleet.world.read(stacks.children, stack.id)
    assert fleet.trigger(stack=inner.id, resource="m1", action="BACKUP").total == 1


def test_values_of_a_structured_deployment_are_inserted(fleet):
    (server,) = fleet.servers(1)
    config = define(
        "OS::Heat::StructuredConfig", group="g", config={"a": {"get_it": "x"}, "b": {"get_it": "deploy_action"}}
    )
    run = on(server.id, input_values={"x": 1}, input_key="get_it")
    run["type"] = "OS::Heat::StructuredDeployment"
    fleet.world.create(template(config=config, run=run), "data")
    for resource in ("run", "config"):
        trigger = fleet.trigger(stack="data", resource=resource, input_values={"x": {"y": 2}})
        (made,) = fleet.running(trigger)
        assert trigger.action == "TRIGGER"
        assert fleet.world.config_of(made).config == {"a": {"y": 2}, "b": "TRIGGER"}


def test_a_strict_structured_deployment_may_use_all_inputs_of_a_run(fleet):
    (server,) = fleet.servers(1)
    told = ("timeout", "status_aware", "signal_id", "signal_verb", "stack_id", "action")
    content = {name: {"get_input": f"deploy_{name}"} for name in told}
    config = define("OS::Heat::StructuredConfig", config=content)
    said = {"signal_transport": "CFN_SIGNAL", "timeout": 60, "input_values_validate": "STRICT"}
    run = on(server.id, **said)
    run["type"] = "OS::Heat::StructuredDeployment"
    stack = fleet.world.create(template(config=config, run=run), "strict")
    assert stack.status == "IN_PROGRESS"
    trigger = fleet.trigger(stack="strict", resource="run", signal_transport="CFN_SIGNAL")
    (made,) = fleet.running(trigger)
    found = fleet.world.config_of(made).config
    assert (found["timeout"], found["status_aware"], found["signal_verb"]) == ("60", "true", "POST")
    with pytest.raises(UserParameterMissing, match="deploy_signal_id"):
        fleet.trigger(stack="strict", resource="run", signal_transport="STOKER_SIGNAL")


def test_a_deployment_of_a_rest_client_is_triggered_from_its_config(fleet):
    (server,) = fleet.servers(1)
    source = fleet.config(inputs=[{"name": "a"}, {"name": "b", "default": 2}])
    values = {"input_values": {"a": 1, "c": 3}, "allow_undeclared": True}
    first = fleet.trigger(config_id=source, servers=[server.id], action="ONE", **values)
    (made,) = fleet.running(first)
    (second,) = fleet.running(fleet.trigger(deployment_id=made.id, input_values={"a": 5}, action="TWO"))
    values = fleet.world.inputs_of(second)
    assert (values["a"], values["b"], values["c"], values["deploy_action"]) == (5, 2, 3, "TWO")
    derived = fleet.world.config_of(second)
    names = [each["name"] for each in derived.inputs]
    assert len(names) == len(set(names))
    assert derived.name == "job_ONE_TWO"


def test_a_trigger_may_have_a_name_and_long_ones_are_shortened(fleet):
    (server,) = fleet.servers(1)
    trigger = fleet.trigger(config_id=fleet.config(name="n" * 255), servers=[server.id], action="A" * 255)
    assert len(trigger.name) == 255
    trigger = fleet.trigger(config_id=fleet.config(name="n" * 255), servers=[server.id], action="BACKUP")
    assert fleet.targets(trigger)[0].name.endswith("n_BACKUP")
    trigger = fleet.trigger(config_id=fleet.config(), servers=[server.id], name="nightly")
    (made,) = fleet.running(trigger)
    assert (trigger.name, fleet.world.config_of(made).name) == ("nightly", "nightly")


SAID = {"stack": "shop", "resource": "app", "action": "BACKUP"}


@pytest.mark.parametrize(
    ("changes", "words"),
    [
        ({"action": "DANCE"}, r"no action 'DANCE': it has CREATE, UPDATE, BACKUP, VERIFY"),
        ({"action": None}, "action is needed: the component has CREATE"),
        ({"stack": "none"}, r"Stack \(none\) could not be found"),
        ({"resource": "none"}, r"Resource \(none\) could not be found in Stack shop"),
        ({"servers": ["none"]}, r"Server \(none\) could not be found"),
        ({"labels": {"role": "none"}}, "no server has the labels role=none"),
        ({"signal_transport": "PIGEON"}, "signal_transport 'PIGEON' is none of AUTO"),
        ({"resource": "value"}, "is of type OS::Heat::Value"),
        ({"stack": None}, "named with its stack"),
        ({"resource": None}, "needs one of"),
        ({"config_id": "x"}, "needs one of"),
        ({"servers": []}, "servers must not be empty"),
        ({"labels": {}}, "labels must not be empty"),
        ({"servers": ["a"], "labels": {"a": "b"}}, "not both"),
        ({"color": "red"}, "unknown member 'color'"),
        ({"max_concurrent": 0}, "max_concurrent"),
        ({"max_fail_percentage": 101}, "max_fail_percentage"),
        ({"canary": "0%"}, "a percentage such as 10%, not '0%'"),
        ({"timeout": 0}, "timeout"),
        ({"require_window": "yes"}, "require_window"),
    ],
)
def test_a_refused_trigger_starts_nothing(fleet, changes, words):
    (server,) = fleet.servers(1)
    value = define("OS::Heat::Value", value=1)
    fleet.world.complete(fleet.world.create(template(app=COMPONENT, on=on(server.id, "app"), value=value), "shop"))
    before = fleet.world.deployments()
    with pytest.raises((Invalid, EntityNotFound), match=words):
        fleet.trigger(**{**SAID, **changes})
    assert fleet.world.deployments() == before


def test_a_trigger_of_a_config_needs_known_servers(fleet):
    with pytest.raises(Invalid, match="servers, labels or a selector are needed"):
        fleet.trigger(config_id=fleet.config())
    fleet.world.create(template(app=COMPONENT), "alone")
    with pytest.raises(Invalid, match="no deployment has brought that"):
        fleet.trigger(stack="alone", resource="app", action="BACKUP")

    fleet.world.create(template(app=COMPONENT, on=on("some-nova-server", "app")), "shop")
    with pytest.raises(EntityNotFound, match="some-nova-server"):
        fleet.trigger(**SAID)


def test_objects_of_another_project_are_not_found(fleet, shop):
    strange = Fleet(replace(fleet.world, project="q"))
    (server,) = strange.servers(1)
    config = strange.config()
    for said in (SAID, {"stack": shop.id, "resource": "app", "action": "BACKUP"}):
        with pytest.raises(EntityNotFound):
            strange.trigger(**said)
    for said in ({"config_id": config, "servers": [server.id]}, {"config_id": fleet.config(), "servers": [server.id]}):
        with pytest.raises(EntityNotFound):
            fleet.trigger(**said)


def test_a_resource_without_a_deployment_is_refused(fleet):
    (server,) = fleet.servers(1)
    first, then = on(server.id, "app"), on(server.id, "app")
    then["depends_on"] = "first"
    fleet.world.create(template(app=COMPONENT, first=first, then=then), "slow")
    with pytest.raises(Invalid, match="not there yet"):
        fleet.trigger(stack="slow", resource="then", action="BACKUP")
    assert fleet.trigger(stack="slow", resource="app", action="BACKUP").total == 1


def test_the_number_of_deployments_per_project_is_limited(store):
    fleet = Fleet(world(store, limits={"deployments_per_project": 2}))
    assert isinstance(fleet.world.engine.limits, Limits)
    ids = [each.id for each in fleet.servers(3)]
    with pytest.raises(RequestLimitExceeded, match="may have 2"):
        fleet.trigger(config_id=fleet.config(), servers=ids)
    assert fleet.trigger(config_id=fleet.config(), servers=ids[:2]).total == 2


def test_targets_of_a_deleted_stack_fail(fleet):
    kinds = {"server": define("OS::Heat::DeployedServer", name="gone")}
    stack = fleet.world.create(template(**kinds), "machines")
    (other,) = fleet.servers(1)
    trigger = fleet.trigger(config_id=fleet.config(), servers=["gone", other.id])
    fleet.world.delete(stack)
    assert fleet.world.work.run(DEADLINE) == 1
    assert fleet.exact(trigger) == {"queued": 0, "running": 1, "complete": 0, "failed": 1, "cancelled": 0}
    assert fleet.targets(trigger)[0].status_reason == "Server gone was removed"


def databases(fleet, server, **more):
    """A component on one server, with a deployment for each of three databases; ``a`` requires ``c``."""
    runs = {name: on(server.id, "app", input_values={"target": name}) for name in "abc"}
    runs["a"]["depends_on"] = "c"
    return fleet.world.complete(fleet.world.create(template(app=COMPONENT, **runs, **more), "shop"))


def values_in_order(fleet, trigger):
    """End the runs of a trigger as they start. Return the input ``target`` of each."""
    values = []
    while running := fleet.running(trigger):
        values.append([made.input_values["target"] for made in running])
        for made in running:
            fleet.end(made)
    assert fleet.exact(trigger)["complete"] == trigger.total
    return values


def test_every_deployment_on_a_server_is_triggered_in_the_order_of_requirements_and_names(fleet):
    (server,) = fleet.servers(1)
    databases(fleet, server)
    trigger = fleet.trigger(stack="shop", resource="app", action="BACKUP", input_values={"password": "y"})
    assert [(target.resource_name, target.server_id) for target in fleet.targets(trigger)] == [
        ("b", server.id),
        ("c", server.id),
        ("a", server.id),
    ]
    assert fleet.world.inputs_of(fleet.running(trigger)[0])["password"] == "y"
    assert values_in_order(fleet, trigger) == [["b"], ["c"], ["a"]]
    named = fleet.trigger(stack="shop", resource="app", action="BACKUP", servers=[server.name])
    assert named.total == 3


def test_the_order_covers_nested_stacks_and_groups(fleet):
    first, second = fleet.servers(2)
    run = on(second.id, "app", input_values={"target": "alone"}) | {"depends_on": "all"}
    group = deployment_group(
        "app",
        servers={"z": first.id, "y": first.id, "x": second.id},
        input_values={"target": "member"},
    )
    fleet.world.create(template(app=COMPONENT, alone=run, all=group), "shop")
    fleet.world.report_all()
    trigger = fleet.trigger(stack="shop", resource="app", action="BACKUP")
    assert [(target.server_name, target.resource_name) for target in fleet.targets(trigger)] == [
        (second.name, "all/x"),
        (second.name, "alone"),
        (first.name, "all/y"),
        (first.name, "all/z"),
    ]
    assert values_in_order(fleet, trigger) == [["member", "member"], ["alone", "member"]]
    only = fleet.trigger(stack="shop", resource="all", action="BACKUP")
    assert [target.resource_name for target in fleet.targets(only)] == ["all/x", "all/y", "all/z"]


def test_max_concurrent_counts_servers(fleet):
    first, second = fleet.servers(2)
    runs = {
        name: on(server.id, "app", input_values={"target": name})
        for name, server in (("a", first), ("b", first), ("c", second), ("d", second))
    }
    fleet.world.complete(fleet.world.create(template(app=COMPONENT, **runs), "shop"))
    trigger = fleet.trigger(stack="shop", resource="app", action="BACKUP", max_concurrent=1)
    assert values_in_order(fleet, trigger) == [["a"], ["b"], ["c"], ["d"]]
    both = fleet.trigger(stack="shop", resource="app", action="BACKUP")
    assert values_in_order(fleet, both) == [["a", "c"], ["b", "d"]]
    canary = fleet.trigger(stack="shop", resource="app", action="BACKUP", canary=1)
    assert values_in_order(fleet, canary) == [["a"], ["b"], ["c"], ["d"]]
    silent = fleet.trigger(stack="shop", resource="app", action="BACKUP", signal_transport="NO_SIGNAL", canary="50%")
    assert fleet.exact(silent)["complete"] == 4


def test_a_run_that_fails_or_disappears_lets_the_next_one_of_its_server_start_until_the_trigger_ends(fleet):
    (server,) = fleet.servers(1)
    databases(fleet, server)
    trigger = fleet.trigger(stack="shop", resource="app", action="BACKUP")
    fleet.end(fleet.running(trigger)[0], 1)
    fleet.do(service.remove, fleet.running(trigger)[0])
    (last,) = fleet.running(trigger)
    assert last.input_values == {"target": "a"}
    assert fleet.exact(trigger) == {"queued": 0, "running": 1, "complete": 0, "failed": 1, "cancelled": 1}
    fleet.end(last)
    again = fleet.again(trigger)
    assert values_in_order(fleet, again) == [["b"], ["c"]]

    trigger = fleet.trigger(stack="shop", resource="app", action="BACKUP", max_fail_percentage=0)
    fleet.end(fleet.running(trigger)[0], 1)
    assert fleet.exact(trigger) == {"queued": 0, "running": 0, "complete": 0, "failed": 1, "cancelled": 2}
    trigger = fleet.trigger(stack="shop", resource="app", action="BACKUP")
    fleet.cancel(trigger)
    assert fleet.exact(trigger) == {"queued": 0, "running": 0, "complete": 0, "failed": 0, "cancelled": 3}


def test_a_removed_server_fails_all_its_targets(fleet):
    first, second = fleet.servers(2)
    runs = {name: on(server.id, "app") for name, server in (("a", first), ("b", second), ("c", second))}
    fleet.world.complete(fleet.world.create(template(app=COMPONENT, **runs), "shop"))
    trigger = fleet.trigger(stack="shop", resource="app", action="BACKUP", max_concurrent=1)
    fleet.world.store.write(lambda tx: servers.delete(tx, second.id))
    fleet.end(fleet.running(trigger)[0])
    assert fleet.exact(trigger) == {"queued": 0, "running": 0, "complete": 1, "failed": 2, "cancelled": 0}
    assert "was removed" in fleet.targets(trigger)[-1].status_reason


def test_a_deployment_whose_update_failed_is_triggered_with_what_it_applied_last(fleet):
    (server,) = fleet.servers(1)

    def version(target, script="backup"):
        component = json.loads(json.dumps(COMPONENT))
        component["properties"]["configs"][1]["config"] = script
        runs = {name: on(server.id, "app", input_values={"target": target}) for name in ("a", "b")}
        runs["b"]["depends_on"] = "a"
        return template(app=component, **runs)

    stack = fleet.world.complete(fleet.world.create(version("old"), "shop"))
    fleet.world.update(stack, version("new"))
    fleet.world.signal(stack, "a", deploy_status_code=1)
    assert fleet.world.states(stack)["a"] == "UPDATE_FAILED"
    trigger = fleet.trigger(stack="shop", resource="app", action="BACKUP")
    assert trigger.source["last_applied"] == ["a"]
    assert values_in_order(fleet, trigger) == [["old"], ["old"]]
    assert fleet.trigger(stack="shop", resource="a", action="BACKUP", input_values={"target": "x"}).total == 1

    fleet.world.update(stack, version("new", "backup 2"))
    fleet.world.signal(stack, "a", deploy_status_code=1)
    trigger = fleet.trigger(stack="shop", resource="app", action="BACKUP")
    (made, *_) = fleet.running(trigger)
    assert fleet.world.config_of(made).config["configs"][1]["config"] == "backup"
    assert values_in_order(fleet, trigger) == [["old"], ["old"]]

    fleet.world.update(stack, version("new", "backup 2"))
    fleet.world.signal(stack, "a")
    fleet.world.signal(stack, "b", deploy_status_code=1)
    with pytest.raises(Invalid, match="Some deployments of app have not applied its present config yet: b"):
        fleet.trigger(stack="shop", resource="app", action="BACKUP")
    assert values_in_order(fleet, fleet.trigger(stack="shop", resource="b", action="BACKUP")) == [["old"]]
    assert values_in_order(fleet, fleet.trigger(stack="shop", resource="a", action="BACKUP")) == [["new"]]

    fleet.world.complete(fleet.world.update(stack, version("new", "backup 2")))
    trigger = fleet.trigger(stack="shop", resource="app", action="BACKUP")
    assert "last_applied" not in trigger.source
    assert values_in_order(fleet, trigger) == [["new"], ["new"]]


def test_a_deployment_that_never_succeeded_is_triggered_with_its_present_inputs(fleet):
    (server,) = fleet.servers(1)
    stack = fleet.world.create(template(app=COMPONENT, on=on(server.id, "app")), "shop")
    fleet.world.signal(stack, "on", deploy_status_code=1)
    fleet.world.update(stack, template(app=COMPONENT, on=on(server.id, "app", input_values={"target": "new"})))
    fleet.world.signal(stack, "on", deploy_status_code=1)
    assert values_in_order(fleet, fleet.trigger(stack="shop", resource="app", action="BACKUP")) == [["new"]]


def test_a_tolerated_member_whose_config_is_gone_is_triggered_with_its_present_one(fleet):
    good, bad = fleet.servers(2)

    def version(script):
        component = json.loads(json.dumps(COMPONENT))
        component["properties"]["configs"][1]["config"] = script
        policy = {"max_batch_size": 2, "max_fail_percentage": 50}
        group = deployment_group("app", servers={"good": good.id, "bad": bad.id})
        group["update_policy"] = {"batch_create": policy, "rolling_update": policy}
        return template(app=component, all=group)

    def end_runs(failed=0):
        for each in fleet.world.running():
            fleet.world.report(each, deploy_status_code=failed if each.server_id == bad.id else 0)

    stack = fleet.world.create(version("old"), "many")
    end_runs()
    fleet.world.update(stack, version("new"))
    end_runs(failed=1)
    assert fleet.world.states(stack)["all"] == "UPDATE_COMPLETE"
    for resource in ("app", "all"):
        trigger = fleet.trigger(stack="many", resource=resource, action="BACKUP")
        assert [target.resource_name for target in fleet.targets(trigger)] == ["all/bad", "all/good"]
        contents = [fleet.world.config_of(made).config for made in fleet.running(trigger)]
        assert [content["configs"][1]["config"] for content in contents] == ["new", "new"]


def test_a_secret_of_the_last_success_stays_secret(fleet):
    (server,) = fleet.servers(1)

    def version(secret):
        run = on(server.id, "app", input_values={"password": {"get_param": "pw"}})
        parameters = {"pw": {"type": "string", "hidden": True, "default": secret}}
        return {**template(app=COMPONENT, on=run), "parameters": parameters}

    stack = fleet.world.complete(fleet.world.create(version("first secret"), "shop"))
    fleet.world.update(stack, version("second secret"))
    fleet.world.signal(stack, "on", deploy_status_code=1)
    trigger = fleet.trigger(stack="shop", resource="app", action="BACKUP")
    (made,) = fleet.running(trigger)
    assert fleet.world.inputs_of(made)["password"] == "first secret"
    assert trigger.options.secret == ("password",)
    assert made.input_values == {"password": "******"}


def test_wrong_inputs_start_nothing(fleet):
    (server,) = fleet.servers(1)
    config = fleet.config(inputs=[{"name": "items", "type": "Number"}])
    with pytest.raises(Invalid, match='"items" is a Number'):
        fleet.trigger(config_id=config, servers=[server.id], input_values={"items": "abc"})
    assert fleet.world.deployments() == []
    trigger = fleet.trigger(config_id=config, servers=[server.id], input_values={"items": "4"})
    assert trigger.input_values == {"items": 4}
    assert fleet.world.inputs_of(fleet.running(trigger)[0])["items"] == 4
