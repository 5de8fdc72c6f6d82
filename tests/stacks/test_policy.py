"""Policies of servers in stacks: who is let in, what is refused and when, windows, and what the audit log has of it."""

from __future__ import annotations

import dataclasses
import threading
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from datetime import UTC, datetime
from itertools import product
from typing import Any

import pytest
from msgspec.structs import replace

from stoker.deployments import server_runs, service
from stoker.deployments.run_end import DEADLINE
from stoker.model.deployment import Deployment
from stoker.model.errors import DeploymentRefused, StackValidationFailed
from stoker.model.server import Server
from stoker.policy import authorizer
from stoker.policy.rules import STACK
from stoker.servers import enrollment
from stoker.stacks import export, repetition
from stoker.stacks.operations import Options
from stoker.store import audit, deployments, documents, servers
from support import deployments as client_runs
from support.blocking import until_blocked
from support.fleet import Fleet
from support.stacks import World, world
from support.templates import config, define, deployment, deployment_group, on, server, template

ID = "00000000-0000-4000-8000-000000000001"
NIGHT = {"maintenance_windows": [{"cron": "0 2 * * *", "minutes": 120}]}
#: The operation's own deadline goes on while its runs wait.
PATIENT = Options(timeout_mins=10_000)
WAITS = "Waiting for the maintenance window of machine, which opens 2026-05-02T02:00:00Z"


INNER = """
heat_template_version: 2018-08-31
parameters: {{s: {{type: string}}}}
resources:
  c: {{type: OS::Heat::SoftwareConfig, properties: {{group: script, config: x}}}}
  d: {{type: OS::Heat::{type}, properties: {{config: {{get_resource: c}}, {servers}}}}}
"""


def governed(policy: Any = None, **more: Any) -> dict[str, Any]:
    return server(**({} if policy is None else {"deployment_policy": policy}), **more)


def add(heat: World, policy: Any = None, **more: Any) -> None:
    """A server that no stack made."""
    Fleet(heat).enroll("web1", id=ID, policy=policy, **{"key_generation": 0, **more})


def find(heat: World, id: str) -> Server:
    found = heat.read(servers.find, id)
    assert found is not None
    return found


def log(heat: World, project: str = "p") -> list[tuple[str, str, str | None]]:
    """Oldest first."""
    found = heat.read(audit.list_all, project)
    return [(each.decision.outcome.value, each.decision.action, each.decision.actor) for each in reversed(found)]


def begin(heat: World, *, project: str = "p", group: str = "script", server: str = ID, **more: Any) -> Deployment:
    """As a REST client: of no stack."""
    named = {"project": project, "group": group, "server": server, "requested_by": "anna"}
    return client_runs.begin(heat.store, f"{project}-{group}", **{"env": heat.engine.env, **named, **more})


def literal(id: str, **properties: Any) -> dict[str, Any]:
    return template({"config": config(), "d": on(id, **properties)})


def later(id: str) -> dict[str, Any]:
    """The same, but the server is known only when it runs."""
    value = define("OS::Heat::Value", value=id)
    return template({"config": config(), "value": value, "d": on({"get_attr": ["value", "value"]})})


def test_a_server_with_the_policy_stack_runs_only_its_own_stack(heat):
    own = heat.create(template({"config": config(), "server": governed("STACK"), "d": deployment()}))
    assert heat.states(own)["d"] == "CREATE_IN_PROGRESS"
    id = heat.resources(own)["server"].physical_id
    before = len(heat.deployments())

    with pytest.raises(
        DeploymentRefused, match=r"resources.d.properties.server: Server machine takes no deployments of"
    ):
        heat.create(literal(id), "other")
    with pytest.raises(DeploymentRefused, match="that no stack makes"):
        begin(heat, server=id)
    assert len(heat.deployments()) == before
    assert log(heat) == [("ALLOWED", "run CREATE", "u")], "what is refused is undone with all the rest"


def test_a_refusal_at_run_time_fails_and_is_audited(heat):
    own = heat.create(template({"server": governed("STACK")}))
    id = heat.resources(own)["server"].physical_id
    other = heat.create(later(id), "other")

    assert other.status == "FAILED"
    assert "resources.d: Server machine takes no deployments of the stack other" in other.reason
    assert 'Add {"stack": "other"} to it' in other.reason
    assert log(heat) == [("REFUSED", "run CREATE", "u")]
    assert heat.deployments() == []
    assert heat.delete(other).status == "COMPLETE"


def test_a_stack_nested_in_the_servers_own_is_admitted(heat):
    inner = INNER.format(type="SoftwareDeployment", servers="server: {get_param: s}")
    nested = define("inner.yaml", s={"get_resource": "server"})
    stack = heat.create(template({"server": governed("STACK"), "inner": nested}), files={"inner.yaml": inner})

    assert heat.states(stack)["inner"] == "CREATE_IN_PROGRESS"
    assert log(heat) == [("ALLOWED", "run CREATE", "u")]


def test_a_refusing_server_in_a_nested_template_refuses_the_stack(heat):
    another = heat.create(template({}))
    add(heat, {"allow": "STACK"}, stack_id=another.id)
    inner = INNER.format(type="SoftwareDeployments", servers="servers: {a: {get_param: s}}")
    nested = template({"inner": define("inner.yaml", s=ID)})
    with pytest.raises(DeploymentRefused, match=r"^resources.inner<inner.yaml>.resources.d.properties.servers.a: "):
        heat.create(nested, files={"inner.yaml": inner})


def test_an_update_is_refused_for_its_new_runs(heat):
    add(heat)
    stack = heat.create(literal(ID))
    heat.report(heat.deployments()[0])
    heat.store.write(lambda tx: servers.change(tx, ID, policy={"allow": "STACK"}))

    assert heat.update(stack, literal(ID)).status == "COMPLETE", "nothing runs anew"
    more = literal(ID)
    more["resources"]["e"] = more["resources"]["d"]
    with pytest.raises(DeploymentRefused, match=r"resources.e.properties.server"):
        heat.update(stack, more)
    again = heat.update(stack, literal(ID, input_values={"a": "1"}))
    assert again.status == "FAILED"
    assert "takes no deployments of the stack s" in again.reason


def test_existing_deployments_may_be_deleted_despite_the_policy(heat):
    add(heat)
    stack = heat.create(literal(ID, actions=["CREATE", "DELETE"]))
    heat.report(heat.deployments()[0])
    heat.store.write(lambda tx: servers.change(tx, ID, policy={"allow": "STACK", "groups": []}))

    heat.delete(stack)
    (run,) = heat.deployments()
    assert (run.action, run.status) == ("DELETE", "IN_PROGRESS")
    heat.report(run)
    assert heat.settled(stack.id).status == "COMPLETE"
    assert heat.deployments() == []


def test_a_group_that_a_server_refuses_is_found_before_the_create(heat):
    wrong = template({"config": config(), "server": governed({"groups": ["puppet"]}), "d": deployment()})
    for resource in (deployment(), deployment_group(servers={"a": {"get_resource": "server"}})):
        wrong["resources"]["d"] = resource
        problem = r"resources.d: Server server runs no configs of the group script"
        with pytest.raises(StackValidationFailed, match=problem):
            heat.create(wrong)
    wrong["resources"]["server"]["properties"]["deployment_policy"] = {"groups": ["script"]}
    assert heat.create(wrong).status == "IN_PROGRESS"

    add(heat, {"groups": ["puppet"]})
    with pytest.raises(DeploymentRefused, match="web1 runs no configs of the group script"):
        heat.create(literal(ID), "other")
    with pytest.raises(DeploymentRefused, match="only puppet"):
        begin(heat)
    assert begin(heat, group="puppet").status == "IN_PROGRESS"


OTHER = {"url": "https://example.org/h", "sha256": "1" * 64}


def deliver(hook: Any, server: Any, **resources: Any) -> dict[str, Any]:
    """A template with a deployment whose config delivers its hook."""
    return template({"config": config(options={"hook": hook}), "d": on(server), **resources})


def test_a_delivered_hook_that_the_policy_denies_is_found_before_the_create(heat):
    hook = heat.store_hook("shout")
    #: policy → whether the stored hook and the hook of the URL are admitted
    expected = [
        (None, True, False),
        ({"hooks": "NONE"}, False, False),
        ({"hooks": "ANY"}, True, True),
        ({"hooks": [OTHER["sha256"]]}, False, True),
        ({"hooks": [hook.sha256]}, True, False),
        ({"groups": ["script"]}, False, False),
        ({"groups": ["script"], "hooks": "STORED"}, True, False),
    ]
    add(heat)
    named = {"get_resource": "machine"}
    for policy, *admitted in expected:
        heat.store.write(lambda tx, policy=policy: servers.change(tx, ID, policy=policy))
        #: a server by its id, an enrolled server of the template's, and a new server with the policy in the template
        forms: list[tuple[Any, dict[str, Any]]] = [
            (ID, {}),
            (named, {"machine": governed(name="web1")}),
            (named, {"machine": governed(policy, name="new")}),
        ]
        for (machine, resources), (value, is_admitted) in product(forms, zip(("shout", OTHER), admitted, strict=True)):
            text = deliver(value, machine, **resources)
            if is_admitted:
                assert heat.delete(heat.create(text)).status == "COMPLETE"
                continue
            problem = r"^resources\.d\.properties\.server: Server (web1|machine) does not fetch the hook"
            with pytest.raises((DeploymentRefused, StackValidationFailed), match=problem):
                heat.create(text)
    assert heat.deployments() == []


def test_the_policy_decides_about_the_group_and_the_hook_of_a_config_that_exists(heat):
    add(heat, {"hooks": "NONE"})
    configs_stack = heat.create(template({"config": config(options={"hook": OTHER})}))
    text = literal(ID)
    text["resources"]["d"]["properties"]["config"] = heat.resources(configs_stack)["config"].physical_id
    with pytest.raises(DeploymentRefused, match=r"^resources\.d\.properties\.server: Server web1 does not fetch"):
        heat.create(text, "other")
    heat.store.write(lambda tx: servers.change(tx, ID, policy={"groups": ["puppet"], "hooks": "ANY"}))
    with pytest.raises(DeploymentRefused, match="web1 runs no configs of the group script"):
        heat.create(text, "other")
    heat.store.write(lambda tx: servers.change(tx, ID, policy={"hooks": "ANY"}))
    assert heat.create(text, "other").status == "IN_PROGRESS"


def test_a_hook_that_is_not_stored_or_not_known_yet(heat):
    add(heat, {"hooks": "NONE"})
    with pytest.raises(
        StackValidationFailed, match=r"resources\.d\.properties\.server: There is no stored hook 'absent'"
    ):
        heat.create(deliver("absent", ID))
    value = define("OS::Heat::Value", value=OTHER["url"])
    later_known = {**OTHER, "url": {"get_attr": ["value", "value"]}}
    assert "does not fetch the hook" in heat.create(deliver(later_known, ID, value=value)).reason


@pytest.mark.parametrize(
    ("said", "problem"),
    [
        ({"deployment_policy": "ALL"}, "deployment_policy: the policy .* is none of STACK, PROJECT"),
        ({"deployment_policy": {"groups": 3}}, "deployment_policy: groups must be a list"),
        ({"labels": {"a b": "c"}}, "labels: invalid label name 'a b'"),
        ({"labels": {"a": 1}}, "labels.a: a label's value must be a string"),
    ],
)
@pytest.mark.parametrize("kind", ["OS::Heat::DeployedServer", "OS::Nova::Server"])
def test_invalid_policies_in_templates_are_refused(heat, said, problem, kind):
    with pytest.raises(StackValidationFailed, match=problem):
        heat.create(template({"server": define(kind, **said)}))


def test_properties_set_and_remove_labels_and_policy(heat):
    stack = heat.create(template({"server": governed("STACK", labels={"tier": "web", "zone": "a"})}))
    id = heat.resources(stack)["server"].physical_id
    assert find(heat, id).labels == {"tier": "web", "zone": "a"}
    assert find(heat, id).policy["allow"] == "STACK"

    before, policy = heat.read(documents.revision, id), {"groups": ["script"], "max_concurrent_runs": 3}
    heat.update(stack, template({"server": governed(policy, labels={"tier": "db"})}))
    assert heat.resources(stack)["server"].physical_id == id
    assert find(heat, id).labels == {"tier": "db"}
    assert find(heat, id).policy.items() >= policy.items()
    assert heat.read(documents.revision, id) > before, "the document says how many runs may run at a time"

    heat.update(stack, template({"server": governed()}))
    assert (find(heat, id).labels, find(heat, id).policy) == ({}, None)


def test_deleting_the_resource_restores_the_enrolled_server(heat):
    add(heat, {"allow": "PROJECT"}, labels={"tier": "web", "rack": "7"})
    said = template({"server": governed("STACK", name="web1", labels={"tier": "db"})})
    stack = heat.create(said)
    assert find(heat, ID).labels == {"tier": "db", "rack": "7"}
    assert find(heat, ID).policy["allow"] == "STACK"
    heat.update(stack, template({"server": governed([], name="web1", labels={"tier": "db", "zone": "b"})}))
    assert find(heat, ID).labels == {"tier": "db", "rack": "7", "zone": "b"}
    heat.store.write(lambda tx: servers.change(tx, ID, labels={"tier": "db", "zone": "somebody said"}))

    heat.delete(stack)
    assert find(heat, ID).labels == {"tier": "web", "zone": "somebody said"}
    assert find(heat, ID).policy == {"allow": "PROJECT"}
    assert find(heat, ID).stands_for == {}


def test_the_stack_of_an_enrolled_servers_resource_is_admitted(heat):
    add(heat, {"allow": "STACK"})
    machine = governed(name="web1")
    stack = heat.create(template({"config": config(), "server": machine, "d": deployment()}))
    assert heat.states(stack)["d"] == "CREATE_IN_PROGRESS"
    assert begin(heat).status == "IN_PROGRESS", "and whoever deploys without a stack is its project"
    with pytest.raises(DeploymentRefused):
        heat.create(literal(ID), "other")
    both = {"config": config(), "server": machine, "d": on(ID) | {"depends_on": "server"}}
    assert heat.create(template(both), "third").status == "IN_PROGRESS"


def test_nova_servers_have_labels_and_policies(heat):
    stack = heat.create(template({"server": define("OS::Nova::Server")}))
    id = heat.resources(stack)["server"].physical_id
    Fleet(heat).enroll("machine", id=id)
    heat.started(stack)
    said = define("OS::Nova::Server", labels={"a": "b"}, deployment_policy="STACK")
    assert heat.update(stack, template({"server": said})).status == "COMPLETE"
    assert (find(heat, id).labels, find(heat, id).policy["allow"]) == ({"a": "b"}, "STACK")


def test_the_sites_policy_applies(store):
    heat = world(store, deployment_policy=STACK)
    own = heat.create(template({"config": config(), "server": server(), "d": deployment()}))
    assert heat.states(own)["d"] == "CREATE_IN_PROGRESS"
    with pytest.raises(DeploymentRefused):
        heat.create(literal(heat.resources(own)["server"].physical_id), "other")
    assert heat.create(literal("11111111-1111-4111-8111-111111111111"), "third").status == "IN_PROGRESS"
    unknown = ("ALLOWED", "run CREATE", "the stack third")  # a server that this project does not have
    assert log(heat) == [("ALLOWED", "run CREATE", "u"), unknown]


def test_only_an_admitted_project_runs_on_the_server(heat):
    add(heat, {"allow": [{"project": "q"}]})
    mine, theirs = begin(heat), begin(heat, project="q")
    with pytest.raises(DeploymentRefused, match=rf"Server {ID} takes no deployments of project r") as refused:
        begin(heat, project="r")

    assert "web1" not in str(refused.value)
    assert (mine.admitted, theirs.admitted) == (False, True)
    assert [id for id, _ in heat.to_run(ID)] == [mine.id, theirs.id]
    assert [len(heat.read(documents.bodies, ID, project)) for project in "pqr"] == [2, 1, 0]
    with heat.store.read() as tx:
        documents.prime_bodies(tx, [ID, "none"])
        assert [len(documents.bodies(tx, ID, project)) for project in "pqr"] == [2, 1, 0]
        assert documents.bodies(tx, "none", "p") == []
    heat.report(theirs)
    assert [id for id, _ in heat.to_run(ID)] == [mine.id]
    assert log(heat, "q") == [], "it is the server's own project that is told"
    assert log(heat) == [("ALLOWED", "run CREATE", "anna")] * 2


def test_with_the_policy_project_foreign_deployments_are_accepted_and_never_run(heat):
    add(heat, {"allow": "PROJECT", "groups": ["puppet"], **NIGHT})
    made = begin(heat, project="q")
    assert (made.status, made.admitted, made.held_by) == ("IN_PROGRESS", False, None)
    assert heat.to_run(ID) == []


def test_a_project_admitted_later_runs_from_its_next_run(heat):
    add(heat)
    heat.project = "q"
    stack = heat.create(literal(ID))
    assert heat.to_run(ID) == []
    heat.store.write(lambda tx: servers.change(tx, ID, policy={"allow": [{"stack": stack.id}]}))
    heat.update(stack, literal(ID, input_values={"a": "1"}))

    assert [id for id, _ in heat.to_run(ID)] == [heat.deployments()[0].id]
    heat.store.write(lambda tx: servers.change(tx, ID, policy={"allow": "STACK"}))
    heat.update(stack, literal(ID, input_values={"a": "2"}))
    assert heat.states(stack)["d"] == "CREATE_FAILED", "no CREATE has completed yet"


def waiting(policy: Any = NIGHT, **properties: Any) -> dict[str, Any]:
    """A template with a deployment on a server that has windows."""
    return template({"config": config(), "server": governed(policy), "d": deployment(**properties)})


def test_a_run_waits_for_its_window_and_then_begins(heat, clock):
    stack = heat.create(waiting(timeout=60), options=PATIENT)
    id = heat.resources(stack)["server"].physical_id
    (made,) = heat.deployments()

    assert (made.held_by, made.status, made.status_reason) == ("WINDOW", "IN_PROGRESS", WAITS)
    assert state(heat, made) == "PENDING_WINDOW"
    assert heat.to_run(id) == []
    assert DEADLINE not in heat.work.kinds(), "its time begins when it may"

    clock.until(heat.work, "2026-05-02T01:59")
    assert heat.to_run(id) == []
    clock.until(heat.work, "2026-05-02T02:00")
    (made,) = heat.deployments()
    assert (made.held_by, made.status_reason) == (None, "Waiting for the agent")
    assert state(heat, made) == "QUEUED"
    assert [each for each, _ in heat.to_run(id)] == [made.id]
    ((_, key, _, at),) = [job for job in heat.work.jobs if job[0] == DEADLINE]
    assert (key, at) == (made.config_id, datetime(2026, 5, 2, 2, 1, 15, tzinfo=UTC))
    heat.report(made)
    assert heat.settled(stack.id).status == "COMPLETE"
    clock.until(heat.work, "2026-05-02T05:00")
    assert authorizer.WINDOW_JOB not in heat.work.kinds(), "no run is held"


@pytest.mark.parametrize("is_retried", [False, True])
def test_an_undo_that_waited_for_its_window_waits_no_longer_than_its_limit_for_the_agent(heat, clock, is_retried):
    """A lost server must not block a deletion for ever."""
    add(heat, {"maintenance_windows": [{"cron": "0 2 * * *", "minutes": 600}]})
    clock.until(heat.work, "2026-05-02T03:00")
    own = begin(heat, options={"undo": "#!/bin/sh", "undo_timeout": 3600})
    heat.report(own)
    clock.until(heat.work, "2026-05-02T13:00")
    heat.store.write(lambda tx: service.remove(tx, heat.engine.env, deployments.get(tx, own.id), "anna"))
    if is_retried:
        heat.store.write(lambda tx: servers.change(tx, ID, policy=None))
        heat.report(heat.read(deployments.get, own.id), deploy_status_code=1)
        failed = heat.read(deployments.get, own.id)
        heat.store.write(lambda tx: service.run_again(tx, heat.engine.env, failed, "anna"))
    clock.until(heat.work, "2026-05-03T02:59")
    assert heat.read(deployments.get, own.id).status == ("FAILED" if is_retried else "IN_PROGRESS")
    clock.until(heat.work, "2026-05-03T03:01")
    assert heat.read(deployments.get, own.id).status == "FAILED"


@pytest.mark.parametrize(
    ("minutes", "options", "still", "ends"),
    [
        (120, Options(), "2026-05-02T02:59", "2026-05-02T03:01"),
        (30, Options(), "2026-05-02T02:59", "2026-05-02T03:01"),  # no agent has come while the window was open
        (120, Options(timeout_mins=5), "2026-05-01T12:00", "2026-05-01T23:59"),
    ],
)
def test_the_default_timeout_of_an_operation_starts_when_the_window_opens(heat, clock, minutes, options, still, ends):
    stack = heat.create(waiting({"maintenance_windows": [{"cron": "0 2 * * *", "minutes": minutes}]}), options=options)
    clock.until(heat.work, still)
    assert (heat.deployments()[0].held_by, heat.settled(stack.id).status) == (
        "WINDOW" if minutes == 30 or still < "2026-05-02" else None,
        "IN_PROGRESS",
    )
    clock.until(heat.work, ends)
    stack = heat.settled(stack.id)
    assert (stack.status, stack.reason) == ("FAILED", "Timed out")


def state(heat: World, made: Any) -> str:
    found = heat.read(deployments.get, made.id).run
    assert found is not None
    return found.state


def test_a_closing_window_holds_undelivered_runs_again(heat, clock):
    resources = {"config": config(), "server": governed(NIGHT), "d": deployment(timeout=90000), "e": deployment()}
    clock.until(heat.work, "2026-05-02T03:00")
    stack = heat.create(template(resources), options=PATIENT)
    id = heat.resources(stack)["server"].physical_id
    assert len(heat.to_run(id)) == 2
    e = heat.resources(stack)["e"].physical_id
    told = next(each for each in heat.deployments() if each.id == e)
    heat.store.write(lambda tx: deployments.save(tx, replace(deployments.get(tx, told.id), state="RUNNING")))

    clock.until(heat.work, "2026-05-02T03:59")
    assert len(heat.to_run(id)) == 2
    clock.until(heat.work, "2026-05-02T04:00")
    assert [each for each, _ in heat.to_run(id)] == [told.id]
    back = next(each for each in heat.deployments() if each.id != told.id)
    assert back.status_reason == WAITS.replace("05-02", "05-03")
    assert state(heat, back) == "PENDING_WINDOW"
    assert DEADLINE not in heat.work.kinds()
    clock.until(heat.work, "2026-05-03T02:00")
    assert len(heat.to_run(id)) == 2
    assert DEADLINE in heat.work.kinds()


def test_many_adjoining_windows_hold_undelivered_runs_when_the_last_one_closes(heat, clock):
    morning = {"maintenance_windows": [{"cron": "*/5 2-11 * * *", "minutes": 5}]}
    clock.until(heat.work, "2026-05-02T02:01")
    stack = heat.create(waiting(morning), options=PATIENT)
    id = heat.resources(stack)["server"].physical_id
    clock.until(heat.work, "2026-05-02T11:59")
    assert len(heat.to_run(id)) == 1
    clock.until(heat.work, "2026-05-02T12:00")
    assert (heat.to_run(id), heat.deployments()[0].status_reason) == ([], WAITS.replace("05-02", "05-03"))


def test_a_changed_policy_applies_at_once(heat, clock):
    resources = {"config": config(), "server": governed(), "d": deployment()}
    stack = heat.create(template(resources))
    id = heat.resources(stack)["server"].physical_id
    assert len(heat.to_run(id)) == 1

    heat.update(stack, template({**resources, "server": governed(NIGHT)}))
    assert heat.to_run(id) == []
    assert heat.deployments()[0].status_reason == WAITS
    noon = {"maintenance_windows": [{"cron": "0 13 * * *", "minutes": 5}]}
    heat.update(stack, template({**resources, "server": governed(noon)}))
    assert heat.deployments()[0].status_reason.endswith("opens 2026-05-01T13:00:00Z")
    heat.update(stack, template({**resources, "server": governed("STACK")}))
    assert len(heat.to_run(id)) == 1
    assert heat.deployments()[0].status_reason == "Waiting for the agent"
    assert authorizer.WINDOW_JOB not in heat.work.kinds()


def test_a_run_without_signal_waits_for_its_window_which_may_change(heat, clock):
    """What is over as far as its stack goes still stands in the server's queue."""
    resources = {"config": config(), "server": governed(NIGHT), "d": deployment(signal_transport="NO_SIGNAL")}
    stack = heat.create(template(resources))
    id = heat.resources(stack)["server"].physical_id
    assert (stack.status, heat.to_run(id)) == ("COMPLETE", [])
    noon = {"maintenance_windows": [{"cron": "0 13 * * *", "minutes": 5}]}
    heat.update(stack, template({**resources, "server": governed(noon)}))
    (made,) = heat.deployments()
    assert (made.status, made.status_reason, heat.to_run(id)) == ("COMPLETE", "Not waiting for outputs signal", [])
    assert authorizer.WINDOW_JOB in heat.work.kinds()
    clock.until(heat.work, "2026-05-01T13:00")
    assert len(heat.to_run(id)) == 1


@pytest.mark.parametrize("said", ["soon", "nan", "-inf", 1e300, "1e10", -1, 0, True, [1], {"a": 1}, "9" * 400])
def test_a_users_input_with_a_reserved_name_is_not_a_time(heat, clock, said):
    values = {"deploy_timeout": said}
    resources = {"config": config(), "server": governed(NIGHT), "d": deployment(input_values=values)}
    stack = heat.create(template({**resources, "e": deployment(timeout=60, input_values=values)}), options=PATIENT)
    clock.until(heat.work, "2026-05-02T02:00")
    assert len(heat.to_run(heat.resources(stack)["server"].physical_id)) == 2
    e = heat.resources(stack)["e"].physical_id
    keys = {job[1] for job in heat.work.jobs if job[0] == DEADLINE}
    assert keys == {each.config_id for each in heat.deployments() if each.id == e}, "ours is the last"


def meanwhile(heat: World, do: Callable[[Any], None]) -> Deployment:
    """What a client begins while another changes its server: it was let in before, and is committed after."""
    entered, done = threading.Event(), threading.Event()
    true = heat.engine.env.authorizer

    class Slow:
        def authorize(self, tx: Any, asking: Any) -> Any:
            found = true.authorize(tx, asking)
            entered.set()
            until_blocked(heat.store, done.is_set)
            return found

    with ThreadPoolExecutor() as threads:
        made = threads.submit(begin, heat, env=dataclasses.replace(heat.engine.env, authorizer=Slow()))
        entered.wait(60)
        threads.submit(heat.store.write, do).result(20)
        done.set()
        made.result(20)
    heat.work.run(DEADLINE)
    (found,) = heat.deployments()
    return found


def test_a_run_that_begins_while_its_server_gets_windows_waits(heat, clock):
    add(heat)

    def change(tx: Any) -> None:
        servers.find(tx, ID, for_update=True)
        servers.change(tx, ID, policy=NIGHT)
        server_runs.reevaluate(tx, heat.work, ID)

    assert meanwhile(heat, change).held_by == "WINDOW"
    assert authorizer.WINDOW_JOB in heat.work.kinds()


def test_a_new_window_holds_no_run_that_a_polling_agent_may_have_begun(heat, clock):
    add(heat, key_generation=1, last_seen=clock.moment)
    begin(heat)
    (started,) = heat.deployments()

    def change(tx: Any) -> None:
        servers.change(tx, ID, policy=NIGHT)
        server_runs.reevaluate(tx, heat.work, ID)

    heat.store.write(change)
    assert heat.deployments() == [started]
    clock.until(heat.work, "2026-05-01T12:05")
    assert heat.deployments()[0].held_by == "WINDOW", "the agent has not polled since, and nothing was sent"


def test_a_run_that_begins_while_its_server_is_removed_fails(heat, clock):
    add(heat)

    def remove(tx: Any) -> None:
        server_runs.release_server(tx, heat.work, ID, "web1")
        servers.delete(tx, ID)

    assert meanwhile(heat, remove).status == "FAILED"


def test_a_template_changes_the_current_labels(heat):
    """Of two who change labels, which are kept as one text, one is second and knows of the other."""
    add(heat, labels={"rack": "7"})
    stack = heat.create(template({"server": governed(name="web1", labels={"tier": "web"})}))
    held, begun = threading.Event(), threading.Event()

    def relabel(tx: Any) -> None:
        found = servers.find(tx, ID, for_update=True)
        held.set()
        begun.wait(60)
        until_blocked(heat.store, made.done)  # the other has read what it reads without a lock
        servers.change(tx, ID, labels={**found.labels, "zone": "a"})

    with ThreadPoolExecutor() as threads:
        other = threads.submit(heat.store.write, relabel)
        held.wait(60)
        said = template({"server": governed(name="web1", labels={"tier": "db"})})
        made = threads.submit(heat.update, stack, said)
        begun.set()
        other.result(20)
        made.result(20)
    assert find(heat, ID).labels == {"rack": "7", "zone": "a", "tier": "db"}


def test_enrollment_keeps_labels_and_policy(heat):
    stack = heat.create(template({"server": governed("STACK", name="web9", labels={"a": "b"})}))
    heat.store.write(lambda tx: enrollment.enroll(tx, "p", "web9"))
    id = heat.resources(stack)["server"].physical_id
    assert find(heat, id).labels == {"a": "b"}
    assert find(heat, id).policy["allow"] == "STACK"


def test_an_abandoned_stack_is_not_admitted(heat):
    add(heat, {"allow": "STACK"}, labels={"tier": "web"})
    said = template({"server": governed(name="web1", labels={"tier": "db"})})
    stack = heat.create(said)
    data = heat.store.write(lambda tx: export.abandon(tx, heat.engine, stack.id))
    again = heat.create(said, "again")
    assert list(find(heat, ID).stands_for.values()) == [again.id]
    heat.delete(again)
    assert find(heat, ID).stands_for == {}
    assert data["name"] == "s"


def test_two_stacks_with_a_resource_of_one_server_are_both_admitted(heat):
    add(heat, {"allow": "STACK"})
    one = template({"config": config(), "server": governed(name="web1"), "d": deployment()})
    first, second = heat.create(one, "first"), heat.create(one, "second")
    assert (heat.states(first)["d"], heat.states(second)["d"]) == ("CREATE_IN_PROGRESS",) * 2
    for each in heat.deployments():
        heat.report(each)
    heat.delete(first)
    assert list(find(heat, ID).stands_for.values()) == [second.id]


def test_a_clients_deployment_named_delete_is_refused_when_it_is_retried(heat):
    add(heat)
    created = begin(heat, action="DELETE")
    heat.report(created, deploy_status_code=1)
    heat.store.write(lambda tx: servers.change(tx, ID, policy={"allow": "STACK", "groups": []}))
    with pytest.raises(DeploymentRefused):
        heat.store.write(lambda tx: repetition.retry(tx, heat.engine, deployments.get(tx, created.id), "anna"))
