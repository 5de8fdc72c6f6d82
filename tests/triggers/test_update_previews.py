"""Which deployments of an update or a creation are previewed on servers: in nested stacks, groups and new stacks."""

from __future__ import annotations

import json
from collections import Counter
from typing import Any

import pytest

from stoker.stacks import operations
from stoker.stacks.operations import Options
from stoker.stacks.templates.prepare import Identity, StackRequest, prepare
from stoker.store import stacks, targets, triggers
from stoker.triggers import update_previews
from support.fleet import Fleet
from support.stacks import World
from support.templates import config, define, deployment, deployment_group, on, server, template

#: Previews write nothing.
pytestmark = pytest.mark.parametrize("database_url", ["sqlite"], indirect=True)


def enroll(heat: World, *names: str, labels: dict[str, str] | None = None) -> list[str]:
    """Enrolled servers whose agents can preview."""
    return [server.id for server in Fleet(heat).enroll(*names, labels=labels, modes=("preview",))]


def preview(heat: World, text: Any, stack: Any = None, files: dict[str, str] | None = None) -> dict[str, Any]:
    """
    By the name of a deployment: the action, the config and the servers with the input values; or the reason.

    The action follows the name if there are several. Without ``stack``, a new stack is previewed.
    """
    identity = Identity(stack.id, stack.name, "p") if stack else Identity("None", "new", "p")
    resolved = prepare(heat.engine, StackRequest(template=text, files=files), identity)

    def do(tx):
        row = stacks.get(tx, stack.id) if stack else new(tx)
        return update_previews.start_previews(tx, heat.engine, row, resolved, "anna", exists=stack is not None)

    def new(tx):
        return operations.new_stack(tx, resolved, Options(), username="anna")

    started = heat.store.write(do)
    with heat.store.read() as tx:
        names = Counter(each.resource_name for each in started)
        return {
            f"{each.resource_name} {each.action}" if names[each.resource_name] > 1 else each.resource_name: (
                each.reason or _shown(tx, each)
            )
            for each in started
        }


def _shown(tx: Any, started: update_previews.ServerPreview) -> tuple[str, Any, dict[str, Any]]:
    content = triggers.content(tx, started.trigger_id)
    of_servers = {target.server_name: target.input_values for target in targets.of_trigger(tx, started.trigger_id)}
    return started.action, content.config, of_servers


def complete(heat: World, text: Any, files: dict[str, str] | None = None) -> Any:
    """Create a stack, and report success for all its deployments."""
    return heat.complete(heat.create(text, files=files))


INNER = template(
    {
        "own": config("inner"),
        "app": on({"get_param": "server"}, "own", input_values={"port": {"get_param": "port"}}),
        "given": define("OS::Heat::SoftwareDeployment", config={"get_param": "config"}, server={"get_param": "server"}),
    },
    parameters={"server": {"type": "string"}, "config": {"type": "string"}, "port": {"type": "string"}},
)
FILES = {"inner.yaml": json.dumps(INNER)}


def outer(server_id: Any, text: str = "one", port: Any = "80", **more: Any) -> dict[str, Any]:
    values = {"server": server_id, "config": {"get_resource": "config"}, "port": port}
    return template({"config": config(text), "web": define("inner.yaml", **values), **more})


def test_deployments_of_a_nested_stack_are_previewed(heat):
    (id,) = enroll(heat, "web1")
    stack = complete(heat, outer(id), FILES)

    assert preview(heat, outer(id), stack, FILES) == {}, "an update without changes runs nothing"
    assert preview(heat, outer(id, port="81"), stack, FILES) == {
        "web/app": ("UPDATE", "inner", {"web1": {"port": "81"}})
    }
    assert preview(heat, outer(id, text="two"), stack, FILES) == {"web/given": ("UPDATE", "two", {"web1": {}})}
    changed = {"inner.yaml": json.dumps(INNER).replace('"inner"', '"changed"')}
    assert preview(heat, outer(id), stack, changed) == {"web/app": ("UPDATE", "changed", {"web1": {"port": "80"}})}


def test_a_nested_stack_that_depends_on_the_update_is_not_previewed(heat):
    (id,) = enroll(heat, "web1")
    value = define("OS::Heat::Value", value="80")
    other = define("OS::Heat::Value", value="81")
    port = {"get_attr": ["value", "value"]}
    stack = complete(heat, outer(id, port=port, value=value), FILES)

    assert preview(heat, outer(id, port=port, value=other), stack, FILES) == {
        "web": "port depends on value.value, unknown until applied"
    }
    unrelated = {"inner.yaml": json.dumps(template({}, parameters=INNER["parameters"]))}
    assert preview(heat, outer(id, port=port, value=other), stack, unrelated) == {}, "nothing runs in it"


def group(count: int, port: str = "80", **more: Any) -> dict[str, Any]:
    values = {"port": port, "number": "%index%"}
    member = on("web%index%", input_values=values)
    return define("OS::Heat::ResourceGroup", count=count, resource_def=member, **more)


def test_members_of_resource_groups_are_previewed(heat):
    enroll(heat, "web0", "web1", "web2")
    text = template({"config": config("c"), "many": group(2)})
    stack = complete(heat, text)

    more = template({"config": config("c"), "many": group(3)})
    assert preview(heat, more, stack) == {
        "many/2": ("CREATE", "c", {"web2": {"port": "80", "number": "2"}}),
    }
    changed = template({"config": config("new"), "many": group(2)})
    assert preview(heat, changed, stack) == {
        f"many/{number}": ("UPDATE", "new", {f"web{number}": {"port": "80", "number": number}}) for number in "01"
    }
    without_first = group(1, removal_policies=[{"resource_list": ["0"]}])
    assert preview(heat, template({"config": config("c"), "many": without_first}), stack) == {}


def test_members_of_a_chain_and_nested_groups_are_previewed(heat):
    (id,) = enroll(heat, "web1")
    values = {"server": id, "config": {"get_resource": "config"}, "port": "80"}
    chain = define("OS::Heat::ResourceChain", resources=["inner.yaml"], resource_properties=values)
    member = define("inner.yaml", **values)
    many = define("OS::Heat::ResourceGroup", count=1, resource_def=member)
    text = template({"config": config("c"), "chain": chain, "many": many})
    expected = {
        f"{name}/0/{inner}": ("CREATE", text, {"web1": values})
        for name in ("chain", "many")
        for inner, text, values in (("app", "inner", {"port": "80"}), ("given", "c", {}))
    }
    assert preview(heat, text, files=FILES) == expected


@pytest.mark.parametrize("by", ["servers", "labels"])
def test_only_new_members_of_a_deployment_group_are_previewed(heat, by):
    first, second = enroll(heat, "web1", "web2", labels={"role": "web"})
    which = {"labels": {"role": "web"}} if by == "labels" else {"servers": {"a": first, "b": second}}

    def text(which: dict[str, Any], **more: Any) -> Any:
        return template({"config": config("c"), "all": deployment_group(**which, **more)})

    assert preview(heat, text(which)) == {"all": ("CREATE", "c", {"web1": {}, "web2": {}})}
    stack = complete(heat, text(which))
    (third,) = enroll(heat, "db1", labels={"role": "db"})
    other = {"selector": "role in (web, db)"} if by == "labels" else {"servers": {"a": first, "c": third}}
    assert preview(heat, text(other), stack) == {"all": ("CREATE", "c", {"db1": {}})}
    everywhere = preview(heat, text(other, input_values={"x": "y"}), stack)
    present = {"web1": {"x": "y"}, **({"web2": {"x": "y"}} if by == "labels" else {})}
    new = {"db1": {"x": "y"}}
    assert everywhere == {"all UPDATE": ("UPDATE", "c", present), "all CREATE": ("CREATE", "c", new)}
    fewer = {"labels": {"role": "none"}} if by == "labels" else {"servers": {"a": first}}
    assert preview(heat, text(fewer), stack) == {}


def test_a_new_stack_is_previewed_on_enrolled_servers(heat):
    enroll(heat, "web1")
    text = template(
        {
            "config": config("c"),
            "machine": server("web1"),
            "absent": server("web2"),
            "app": deployment("config", "machine", input_values={"a": "1"}),
            "none": deployment("config", "absent"),
            "next": deployment("config", "machine", input_values={"a": {"get_attr": ["app", "deploy_stdout"]}}),
            "never": deployment("config", "machine", actions=["DELETE"]),
        }
    )
    assert preview(heat, text) == {
        "app": ("CREATE", "c", {"web1": {"a": "1"}}),
        "none": "server depends on absent, unknown until applied",
        "next": "input_values depends on app.deploy_stdout, unknown until applied",
    }
    assert [each.stack_id for each in heat.deployments()] == [None]
    assert heat.read(stacks.find, "None") is None


def test_a_new_config_delivers_its_stored_hook_and_is_expanded(heat):
    enroll(heat, "web1")
    hook = heat.store_hook("shout")
    text = template({"config": config("c", options={"hook": "shout"}), "app": on("web1")})
    assert preview(heat, text) == {"app": ("CREATE", "c", {"web1": {}})}
    (run,) = heat.deployments()
    assert heat.config_of(run).options["hook"]["sha256"] == hook.sha256


def test_one_request_starts_a_limited_number_of_previews(heat, monkeypatch):
    monkeypatch.setattr(update_previews, "MOST", 2)
    enroll(heat, "web0", "web1", "web2")
    shown = preview(heat, template({"config": config("c"), "many": group(3)}))
    assert [isinstance(each, tuple) for each in shown.values()] == [True, True, False]
    assert shown["many/2"] == "a request previews at most 2 deployments and groups"
