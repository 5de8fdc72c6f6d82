"""Servers without the hook of a config: refused where that is certain, before anything is written."""

from __future__ import annotations

import json

import pytest

from stoker.model.config import needed_groups
from stoker.model.errors import Conflict, StackValidationFailed
from stoker.model.trigger import TargetStatus
from stoker.servers.presence import store_facts
from stoker.stacks.prechecks import PROGRAMS, PlannedDeployment, Prechecks
from stoker.store import servers
from stoker_agent.programs import list_builtin
from stoker_agent.tools import list_programs
from support.fleet import Fleet
from support.templates import define, deployment, deployment_group, on, server, template

HOOKS = ("ansible", "script")
NO_ANSIBLE = "app.properties.server: server 'web1' has no ansible-playbook, which the hook of the group 'ansible' calls"


def enroll(heat, name="web1", hooks=HOOKS, **more):
    (server,) = Fleet(heat).enroll(name, hooks=hooks, **more)
    return server.id


def software(group="cobol", **properties):
    return define("OS::Heat::SoftwareConfig", group=group, config="x", **properties)


def component(*actions, tool="cobol"):
    configs = [{"actions": ["UPDATE"], "tool": "script", "config": "x"}]
    configs.append({"actions": list(actions), "tool": tool, "config": "x"})
    return define("OS::Heat::SoftwareComponent", configs=configs)


def refused(heat, resources, **more):
    with pytest.raises(StackValidationFailed) as raised:
        heat.create(template(resources), **more)
    assert heat.deployments() == []
    return raised.value.message


def test_servers_of_the_template_members_components_and_existing_configs_are_checked(heat):
    id = enroll(heat)
    here = server("web1")
    assert refused(heat, {"config": software(), "server": here, "app": deployment()}) == (
        "resources.app.properties.server: server 'web1' has no hook for the group 'cobol' (it has ansible, script):"
        " install the hook there, let the config deliver it (option hook), or set the config's option hook_required to"
        " false if it is installed before the run"
    )
    group = deployment_group(servers={"one": {"get_resource": "server"}})
    message = refused(heat, {"config": software(), "server": here, "group": group})
    assert "resources.group.properties.servers.one: server 'web1'" in message
    assert "no hook for the group 'cobol'" in refused(heat, {"config": component("CREATE"), "app": on(id)})
    stack = heat.create(template({"config": software()}), "configs")
    app = define("OS::Heat::SoftwareDeployment", config=heat.resources(stack)["config"].physical_id, server=id)
    assert "no hook for the group 'cobol'" in refused(heat, {"app": app})


@pytest.mark.parametrize(
    "config",
    [
        software("script"),
        software("ansible"),
        software("Heat::Ungrouped"),
        software(options={"hook": {"url": "https://example.org/cobol", "sha256": "0" * 64}}),
        software(options={"hook_required": False}),
        component("CREATE", tool="ansible"),
        component("BACKUP"),
    ],
)
def test_a_config_that_may_run_is_not_refused(heat, config):
    id = enroll(heat, policy={"hooks": "ANY"})
    assert str(heat.create(template({"config": config, "app": on(id)})).status) != "FAILED"


def test_a_server_whose_hooks_are_not_known_is_not_refused(heat):
    """A server with OpenStack's agent, an agent that has not polled yet, and a server of another project."""
    stranger = enroll(heat, name="web2", project_id="q")
    resources = {"config": software(), "server": server("web1"), "app": deployment()}
    assert str(heat.create(template(resources)).status) == "IN_PROGRESS"
    enroll(heat, hooks=())
    assert str(heat.create(template(resources), "not polled").status) == "IN_PROGRESS"
    foreign = template({"config": software(), "app": on(stranger)})
    assert str(heat.create(foreign, "foreign").status) == "IN_PROGRESS"


def test_an_update_checks_new_deployments_only(heat):
    id = enroll(heat)
    resources = {"config": software("ansible"), "app": on(id)}
    stack = heat.create(template(resources))
    heat.complete(stack)
    heat.store.write(lambda tx: servers.change(tx, id, hooks=("script",)))
    more = {**resources, "value": define("OS::Heat::Value", value=1)}
    assert str(heat.update(stack, template(more)).status) == "COMPLETE"
    with pytest.raises(StackValidationFailed, match=r"resources\.new\.properties\.server: server 'web1' has no hook"):
        heat.update(stack, template({**more, "new": on(id)}))


@pytest.mark.parametrize("kind", ["deployment", "group", "nested", "component"])
def test_an_update_checks_existing_deployments_whose_config_changes(heat, kind):
    id = enroll(heat)

    def build(group):
        part = {"actions": ["CREATE", "UPDATE"], "tool": group, "config": "x"}
        tools = define("OS::Heat::SoftwareComponent", configs=[part])
        config = tools if kind == "component" else software(group)
        resources = {"config": config, "app": on(id)}
        if kind == "group":
            resources["app"] = deployment_group(servers={"one": id})
        if kind != "nested":
            return {"template": template(resources)}
        outer = template({"inner": {"type": "inner.yaml"}})
        return {"template": outer, "files": {"inner.yaml": json.dumps(template(resources))}}

    stack = heat.create(**build("ansible"))
    with pytest.raises(StackValidationFailed, match=r"app\.properties\.server.* has no hook for the group 'cobol'"):
        heat.update(stack, **build("cobol"))
    assert heat.settled(stack.id).action != "UPDATE"
    heat.store.write(lambda tx: servers.change(tx, id, hooks=("script",)))
    assert heat.update(stack, **build("ansible")).action == "UPDATE"
    assert heat.update(stack, **build("script")).status != "FAILED"


def test_a_deployment_that_an_update_does_not_run_is_not_checked(heat):
    id = enroll(heat)
    app = on(id, actions=["CREATE"])
    stack = heat.create(template({"config": software("ansible"), "app": app}))
    heat.complete(stack)
    assert heat.update(stack, template({"config": software("cobol"), "app": app})).status == "COMPLETE"


def test_a_trigger_is_refused_on_the_servers_without_the_hook(fleet):
    (able,), (unable,) = fleet.servers(1, hooks=("cobol",)), fleet.servers(1, hooks=HOOKS)
    config = fleet.config(group="cobol")
    trigger = fleet.trigger(config_id=config, servers=[able.id, unable.id])
    assert [made.server_id for made in fleet.running(trigger)] == [able.id]
    first, second = fleet.targets(trigger)
    assert (first.status, second.status) == (TargetStatus.IN_PROGRESS, TargetStatus.FAILED)
    assert second.status_reason.startswith(f"The server {unable.name!r} has no hook for the group 'cobol' (it has a")
    with pytest.raises(Conflict, match=f"The server {unable.name!r} has no hook for the group 'cobol'"):
        fleet.trigger(config_id=config, servers=[unable.id])
    fleet.end(fleet.running(trigger)[0])
    fleet.world.store.write(lambda tx: servers.change(tx, unable.id, hooks=("cobol",)))
    assert [made.server_id for made in fleet.running(fleet.again(trigger))] == [unable.id]


@pytest.mark.parametrize(
    ("tools", "warnings"),
    [
        ({"puppet": "7.23.0"}, [NO_ANSIBLE]),
        ({"ansible-playbook": ""}, []),
        (None, []),
    ],
)
def test_a_missing_program_is_a_warning(heat, tools, warnings):
    id = enroll(heat)
    facts = {"hooks": list(HOOKS)} if tools is None else {"tools": tools}
    heat.store.write(lambda tx: store_facts(tx, id, facts))
    planned = PlannedDeployment(
        top="app", resource_place="app", key="server", server_id=id, group="ansible", actions=("CREATE",)
    )
    with heat.store.read() as tx:
        assert Prechecks.of(tx, "p", [planned] * 2).list_missing_programs() == warnings
        assert Prechecks.of(tx, "q", [planned] * 2).list_missing_programs() == []


def test_every_program_of_a_hook_is_among_the_facts():
    assert set(PROGRAMS) <= set(list_builtin())
    assert {program for programs in PROGRAMS.values() for program in programs} <= set(list_programs())


@pytest.mark.parametrize(
    "odd", [None, 5, "text", [], [5], {"configs": 5}, {"configs": [5, {}, {"tool": 5}, {"tool": "x", "actions": [{}]}]}]
)
def test_odd_components_and_options_need_no_hooks(odd):
    assert needed_groups("component", odd, {}, ("CREATE",)) == frozenset()
    if not isinstance(odd, dict | None):
        assert needed_groups("cobol", "x", odd, ("CREATE",)) == frozenset()
