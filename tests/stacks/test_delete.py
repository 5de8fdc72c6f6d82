"""
Deleting runs what a deployment has for its deletion, or undoes what it made, before the deployment disappears.

``test_actions`` has the order and the repetition. A law of ``test_lifecycle_laws`` is that a deletion always empties.
"""

from __future__ import annotations

import pytest

from stoker.deployments import service
from stoker.deployments.configs import new_config
from stoker.deployments.run_end import DEADLINE
from stoker.deployments.run_plan import REMEDY
from stoker.model.deployment import UNDO
from stoker.model.errors import Invalid
from stoker.store import configs, deployments, documents, servers
from support.deployments import begin
from support.stacks import values
from support.templates import config, define, deployment, on, server, template

COMPONENT = define(
    "OS::Heat::SoftwareComponent",
    inputs=[{"name": "word"}],
    configs=[{"actions": [action], "config": f"echo {action}", "tool": "script"} for action in ("CREATE", "DELETE")],
)


@pytest.mark.parametrize("is_config_deleted", [False, True])
@pytest.mark.parametrize("source", [config("echo DELETE", inputs=("word",)), COMPONENT], ids=["config", "component"])
def test_a_delete_action_runs_before_the_deletion_and_is_retried_after_a_failure(heat, source, is_config_deleted):
    run = deployment(actions=["CREATE", "DELETE"], input_values={"word": "x"})
    stack = heat.signal(heat.create(template({"config": source, "server": server(), "d": run})), "d")
    if is_config_deleted:
        heat.store.write(lambda tx: configs.delete(tx, heat.resources(stack)["config"].physical_id))
    stack = heat.delete(stack)
    unchanged = dict.fromkeys(("config", "server"), "CREATE_COMPLETE")
    assert heat.states(stack) == {**unchanged, "d": "DELETE_IN_PROGRESS"}
    run = heat.entry(heat.resources(stack)["server"].physical_id)
    assert "echo DELETE" in str(run["config"])
    inputs = values(run["inputs"])
    assert (inputs["deploy_action"], inputs["word"]) == ("DELETE", "x")

    stack = heat.signal(stack, "d", deploy_status_code=1)
    assert (stack.action, stack.status) == ("DELETE", "FAILED")
    heat.delete(stack)
    stack = heat.signal(stack, "d")
    assert (stack.status, heat.resources(stack)) == ("COMPLETE", {})


#: What undoes.
SCRIPT = "#!/bin/sh\nrm -f /tmp/made"


@pytest.fixture
def machine(fleet):
    """The id of an enrolled server whose agent knows how to undo."""
    (server,) = fleet.servers(1, modes=(UNDO,))
    return server.id


def undoable(server_id, option=SCRIPT, *, transport="STOKER_SIGNAL", **options):
    """A template with a deployment on a server, whose config says how to undo."""
    group = "file" if option is True else "script"
    resources = {
        "config": config(inputs=("word",), group=group, options={"undo": option, **options}),
        "d": on(server_id, input_values={"word": "x"}, signal_transport=transport),
    }
    return template(resources)


def signal(heat, stack, code=0):
    return heat.signal(stack, "d", deploy_status_code=code)


@pytest.mark.parametrize(
    ("option", "group", "text", "mode"),
    [(SCRIPT, "script", SCRIPT, None), (True, "file", "#!/bin/sh\necho", UNDO)],
)
def test_the_deletion_of_a_stack_undoes_its_deployments(heat, machine, option, group, text, mode):
    stack = signal(heat, heat.create(undoable(machine, option)))
    stack = heat.delete(stack)

    assert heat.states(stack)["d"] == "DELETE_IN_PROGRESS"
    run = heat.entry(machine)
    assert (run["group"], run["config"], run["mode"]) == (group, text, mode)
    assert (values(run["inputs"])["word"], values(run["inputs"])["deploy_action"]) == ("x", "DELETE")
    assert values(run["inputs"])["deploy_timeout"] == "600.0"

    stack = signal(heat, stack)
    assert (stack.action, stack.status, heat.deployments()) == ("DELETE", "COMPLETE", [])


def test_true_is_refused_for_hooks_that_cannot_undo_before_anything_is_written(heat):
    with pytest.raises(Invalid, match=r"resources\.config.*The option undo must be the text of a script"):
        heat.create(template({"config": config(options={"undo": True})}))
    with pytest.raises(Invalid, match=r"resources\.config.*the hook of the group ansible cannot undo"):
        heat.create(template({"config": config(group="ansible", options={"undo": True})}))
    with pytest.raises(Invalid, match="The option undo must be the text of a script"):
        heat.store.write(lambda tx: new_config(tx, "p", group="script", options={"undo": "true"}))


@pytest.mark.parametrize("option", [False, None, "", "false"])
def test_without_the_option_nothing_runs(heat, machine, option):
    assert heat.delete(signal(heat, heat.create(undoable(machine, option)))).deleted_at is not None


def test_a_failed_undo_fails_the_deletion_until_a_retry_or_the_removal_of_the_server(heat, machine):
    stack = heat.delete(signal(heat, heat.create(undoable(machine, undo_timeout=30))))
    assert values(heat.entry(machine)["inputs"])["deploy_timeout"] == "30.0"
    heat.work.run(DEADLINE)
    stack = heat.settled(stack.id)
    assert (stack.action, stack.status) == ("DELETE", "FAILED")
    assert "Timed out: Waiting for the agent" in stack.reason

    stack = signal(heat, heat.delete(stack), 3)
    assert (stack.action, stack.status) == ("DELETE", "FAILED")
    assert "non-zero status code: 3" in stack.reason
    assert REMEDY in stack.reason

    stack = heat.delete(stack)
    assert heat.entry(machine)["config"] == SCRIPT
    heat.store.write(lambda tx: servers.delete(tx, machine))
    assert heat.delete(signal(heat, stack, 1)).status == "COMPLETE"


def test_an_agent_that_does_not_know_how_to_undo_never_gets_the_run(heat, fleet):
    (old,) = fleet.servers(1)
    stack = heat.delete(signal(heat, heat.create(undoable(old.id, True))))
    assert (stack.action, stack.status) == ("DELETE", "FAILED")
    assert f"The agent of server {old.name} does not know how to undo" in stack.reason
    assert heat.read(documents.to_run, old.id) == []


@pytest.mark.parametrize("is_polling", [False, True])
def test_a_run_that_no_agent_may_have_begun_is_not_undone(heat, machine, is_polling):
    """A delivery is recorded a moment after the document was sent to an agent that polls."""
    if is_polling:
        heat.store.write(lambda tx: servers.record_seen_again(tx, tx.now, [machine]))
    stack = heat.delete(heat.create(undoable(machine)))
    assert (stack.action, stack.status) == ("DELETE", "IN_PROGRESS" if is_polling else "COMPLETE")


def test_the_undo_of_the_old_one_precedes_a_replacement_on_the_same_server(heat, machine):
    stack = signal(heat, heat.create(undoable(machine)))
    stack = heat.update(stack, undoable(machine, transport="CFN_SIGNAL"))
    assert heat.entry(machine)["config"] == SCRIPT

    (old,) = heat.deployments()
    heat.report(old)
    (new,) = heat.deployments()
    assert (new.id == old.id, new.action) == (False, "CREATE")
    assert signal(heat, stack).status == "COMPLETE"
    heat.delete(stack)
    assert heat.entry(machine)["config"] == SCRIPT


@pytest.fixture
def own(heat, machine):
    """A client's own deployment, which has run."""
    inputs, options = [{"name": "word", "value": "x"}], {"undo": SCRIPT}
    started = begin(heat.store, "job", server=machine, inputs=inputs, options=options)
    heat.report(started)
    return started


def remove(heat, started, **how):
    heat.store.write(
        lambda tx: service.remove(tx, heat.engine.env, deployments.get(tx, started.id), "ann", **how),
    )


def now(heat, started):
    return heat.read(deployments.find, started.id)


def test_a_deployment_that_its_client_deletes_is_undone_first(heat, machine, own):
    remove(heat, own)
    run = heat.entry(machine)
    assert (run["group"], run["config"]) == ("script", SCRIPT)
    assert (values(run["inputs"])["word"], values(run["inputs"])["deploy_action"]) == ("x", "DELETE")

    remove(heat, own)  # while the undo runs, another deletion changes nothing
    assert heat.entry(machine)["id"] == run["id"]
    heat.report(now(heat, own), deploy_status_code=1)
    assert (now(heat, own).status, now(heat, own).action) == ("FAILED", "DELETE")

    remove(heat, own)
    heat.report(now(heat, own))
    assert now(heat, own) is None


def test_a_client_may_give_up_the_undo(heat, own):
    remove(heat, own, force=True)
    assert now(heat, own) is None


@pytest.mark.parametrize("ran_before", [False, True])
@pytest.mark.parametrize("option", [SCRIPT, True])
def test_another_config_after_a_failed_undo_ends_the_removal(heat, machine, option, ran_before):
    group = "file" if option is True else "script"
    started = begin(heat.store, "job", server=machine, group=group, options={"undo": option})
    heat.report(started)
    remove(heat, started)
    heat.report(now(heat, started), deploy_status_code=1)

    other, _ = heat.store.write(lambda tx: new_config(tx, started.project_id, group="script", config="true"))
    if ran_before:  # then the server gets a copy
        heat.store.write(lambda tx: deployments.record_past_config(tx, machine, other.id))
    failed, changes = now(heat, started), {"config_id": other.id, "status": "IN_PROGRESS"}
    heat.store.write(lambda tx: service.change(tx, heat.engine.env, failed, changes, "ann"))
    run = now(heat, started)
    assert (run.mode, run.action, run.config_id == other.id) == (None, "UPDATE", not ran_before)
    heat.report(run)
    assert now(heat, started).status == "COMPLETE"
