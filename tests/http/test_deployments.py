"""What REST clients do to deployments has the same consequences as what agents and stacks do, and leaves nothing."""

from __future__ import annotations

import pytest

from support import query
from support.templates import config, define, deployment, template

#: The same rows on both kinds of database, which tests of deployments and stacks store.
pytestmark = pytest.mark.parametrize("database_url", ["sqlite"], indirect=True)

#: A deployment that an agent reports to an object for, within a time: a container, an object and a job.
CARRIED = {"signal_transport": "TEMP_URL_SIGNAL", "timeout": 600}


def software_config(site, **more):
    return site.create("software_configs", **{"group": "script", "config": "true", **more})["id"]


def software_deployment(site, **body):
    return site.create("software_deployments", **{"server_id": "s", **body})


def change(site, made, answers=200, **body):
    return site.call("PUT", f"/software_deployments/{made['id']}", body, answers)


def runs_of(site, made):
    found = site.call("GET", f"/software_deployments/{made['id']}/runs")["runs"]
    return sorted(found, key=lambda each: each["number"])


def stack(site, resources, name="s"):
    return site.create_stack(name, template(resources))


def shown(site, path):
    return site.stack(path)["stack_status"]


def left(site, *tables):
    with site.store.read() as tx:
        return {table: count for table in tables if (count := query.count(tx, table))}


def jobs_of(site):
    with site.store.read() as tx:
        return query.column(tx, "SELECT kind FROM jobs WHERE state = 'WAITING'")


@pytest.mark.parametrize("word", ["BOGUS", "complete", "DELETED", ""])
def test_a_status_unknown_to_heat_ends_no_run(site, word):
    id = stack(site, {"config": config(), "server": {"type": "OS::Heat::DeployedServer"}, "d": deployment()})
    (made,) = site.call("GET", "/software_deployments")["software_deployments"]
    change(site, made, 400, status=word)
    software_config_id = software_config(site)
    body = {"server_id": "s", "config_id": software_config_id, "status": word}
    site.call("POST", "/software_deployments", body, 400)
    assert shown(site, id) == "CREATE_IN_PROGRESS"
    change(site, made, status="COMPLETE")
    assert shown(site, id) == "CREATE_COMPLETE"
    assert [(each["state"], each["status"]) for each in runs_of(site, made)] == [("DONE", "COMPLETE")]


def test_a_config_that_the_server_has_run_runs_as_a_copy(site):
    """Agents run each config once."""
    first, second = software_config(site, config="first"), software_config(site, config="second")
    made = software_deployment(site, config_id=first, status="IN_PROGRESS")
    change(site, made, status="COMPLETE")
    changed = change(site, made, config_id=second, status="IN_PROGRESS")["software_deployment"]
    assert (changed["config_id"], changed["status"]) == (second, "IN_PROGRESS")
    runs = [(run["config_id"], run["state"], run["status"]) for run in runs_of(site, made)]
    assert runs == [(first, "DONE", "COMPLETE"), (second, "QUEUED", "IN_PROGRESS")]
    back = change(site, made, config_id=first, status="IN_PROGRESS", input_values={"a": 1})["software_deployment"]
    assert back["config_id"] not in (first, second)
    assert (back["status"], back["input_values"]) == ("IN_PROGRESS", {"a": 1})
    assert site.call("GET", f"/software_configs/{back['config_id']}")["software_config"]["config"] == "first"
    assert [run["status"] for run in runs_of(site, made)] == ["COMPLETE", "FAILED", "IN_PROGRESS"]
    elsewhere = software_deployment(site, config_id=second, server_id="s2", status="IN_PROGRESS")
    assert elsewhere["config_id"] == second
    for earlier in (elsewhere, made):
        change(site, earlier, status="COMPLETE")
        site.call("DELETE", f"/software_deployments/{earlier['id']}")
        again = software_deployment(site, config_id=second, server_id=earlier["server_id"], status="IN_PROGRESS")
        assert again["config_id"] != second
        assert site.call("GET", f"/software_configs/{again['config_id']}")["software_config"]["config"] == "second"
        third = software_deployment(site, config_id=second, server_id=earlier["server_id"], status="IN_PROGRESS")
        assert third["config_id"] not in (second, again["config_id"])


def test_a_new_config_of_a_derived_deployment_inherits_nothing(site):
    """Its derived config, its deadline and the place for its results were of the run before."""
    source, own = software_config(site), software_config(site)
    made = software_deployment(site, config_id=source, **CARRIED)
    assert left(site, "containers") and jobs_of(site)
    change(site, made, config_id=own)
    assert not left(site, "containers", "objects") and not jobs_of(site)
    site.call("GET", f"/software_configs/{made['config_id']}", status=404)
    site.call("DELETE", f"/software_deployments/{made['id']}")
    for id in (source, own):
        site.call("DELETE", f"/software_configs/{id}")
    assert not left(site, "configs", "deployments", "runs", "logs")


@pytest.mark.parametrize("more", [{"status": "IN_PROGRESS"}, CARRIED])
def test_the_status_in_progress_starts_the_same_config_again(site, more):
    source = software_config(site, config="echo")
    made = software_deployment(site, config_id=source, **more)
    change(site, made, status="COMPLETE", output_values={"a": 1})
    again = change(site, made, status="IN_PROGRESS", status_reason="once more")["software_deployment"]
    assert (again["status"], again["status_reason"]) == ("IN_PROGRESS", "once more")
    assert again["config_id"] != made["config_id"]  # agents run a config once
    assert site.call("GET", f"/software_configs/{again['config_id']}")["software_config"]["config"] == "echo"
    assert [each["state"] for each in runs_of(site, made)] == ["DONE", "QUEUED"]
    change(site, made, status="FAILED")
    assert [each["status"] for each in runs_of(site, made)] == ["COMPLETE", "FAILED"]
    retried = site.call("POST", f"/software_deployments/{made['id']}/retry")["software_deployment"]
    assert site.call("GET", f"/software_configs/{retried['config_id']}")["software_config"]["config"] == "echo"
    assert len({run["config_id"] for run in runs_of(site, made)}) == 3
    site.call("DELETE", f"/software_deployments/{made['id']}")
    site.call("DELETE", f"/software_configs/{source}")
    assert not left(site, "configs", "deployments", "runs", "containers", "objects") and not jobs_of(site)


def test_a_derived_deployment_does_not_run_again_as_if_it_had_other_inputs(site):
    inputs = [{"name": "word"}, {"name": "token", "secret": True}]
    own = {"word": "a", "token": "confidential"}
    made = software_deployment(
        site, config_id=software_config(site, inputs=inputs), input_values=own, signal_transport="STOKER_SIGNAL"
    )
    change(site, made, status="COMPLETE")
    values = site.call("GET", f"/software_deployments/{made['id']}")["software_deployment"]["input_values"]
    refused = change(site, made, 409, status="IN_PROGRESS", input_values={**values, "word": "b"})
    assert "runs again with the inputs of its derived config" in refused["error"]["message"]
    assert len(runs_of(site, made)) == 1
    change(site, made, status="IN_PROGRESS", input_values=values)  # as they were read
    assert len(runs_of(site, made)) == 2


@pytest.mark.parametrize("status", ["IN_PROGRESS", "COMPLETE"])
def test_a_deployment_without_a_status_starts_or_ends_by_its_first_status(site, status):
    made = software_deployment(site, config_id=software_config(site))
    assert change(site, made, status=status)["software_deployment"]["config_id"] == made["config_id"]
    assert [each["state"] for each in runs_of(site, made)] == ["QUEUED" if status == "IN_PROGRESS" else "DONE"]
    change(site, made, status="FAILED")
    assert [(each["state"], each["status"]) for each in runs_of(site, made)] == [("DONE", "FAILED")]


def test_only_the_stack_decides_what_its_deployment_runs(site):
    stack(site, {"config": config(), "server": {"type": "OS::Heat::DeployedServer"}, "d": deployment()})
    (made,) = site.call("GET", "/software_deployments")["software_deployments"]
    change(site, made, 409, config_id=software_config(site))
    change(site, made, status="COMPLETE")
    change(site, made, 409, status="IN_PROGRESS")
    assert change(site, made, output_values={"a": 1})["software_deployment"]["output_values"] == {"a": 1}


def test_a_running_deployment_that_is_deleted_fails_its_resource_and_leaves_nothing(site):
    id = stack(site, {"config": config(), "server": {"type": "OS::Heat::DeployedServer"}, "d": deployment(**CARRIED)})
    (made,) = site.call("GET", "/software_deployments")["software_deployments"]
    assert {"deployment.deadline", "stack.deadline"} <= set(jobs_of(site))
    site.call("DELETE", f"/software_deployments/{made['id']}")
    assert shown(site, id) == "CREATE_FAILED"
    assert set(jobs_of(site)) == {"document.publish"}  # the server's document is another now
    site.call("GET", f"/software_configs/{made['config_id']}", status=404)
    site.call("DELETE", id)
    assert shown(site, id) == "DELETE_COMPLETE"
    assert not left(site, "configs", "deployments", "runs", "containers", "objects", "servers") and not jobs_of(site)


def test_deleting_a_deployment_completes_the_deletion_of_its_resource(site):
    actions = {"actions": ["CREATE", "DELETE"], **CARRIED}
    id = stack(site, {"config": config(), "server": {"type": "OS::Heat::DeployedServer"}, "d": deployment(**actions)})
    (made,) = site.call("GET", "/software_deployments")["software_deployments"]
    change(site, made, status="COMPLETE")
    site.call("DELETE", id)
    assert shown(site, id) == "DELETE_IN_PROGRESS"
    site.call("DELETE", f"/software_deployments/{made['id']}")
    assert shown(site, id) == "DELETE_COMPLETE"
    assert not left(site, "configs", "deployments", "runs", "containers", "objects", "servers") and not jobs_of(site)


def test_a_retained_deployment_has_no_owner_and_can_be_removed(site):
    inner = define("OS::Heat::DeployedServer", software_config_transport="POLL_TEMP_URL")
    id = stack(
        site,
        {
            "config": config(),
            "server": inner | {"deletion_policy": "Retain"},
            "d": deployment(**CARRIED) | {"deletion_policy": "Retain"},
            "group": define("OS::Heat::ResourceGroup", count=2, resource_def=inner) | {"deletion_policy": "Retain"},
        },
    )
    (made,) = site.call("GET", "/software_deployments")["software_deployments"]
    change(site, made, status="COMPLETE")
    assert shown(site, id) == "CREATE_COMPLETE"
    site.call("DELETE", id)
    assert shown(site, id) == "DELETE_COMPLETE"
    retained = site.call("GET", "/servers")["servers"]
    assert [each["stack_id"] for each in retained] == [None] * 3
    site.call("DELETE", f"/software_deployments/{made['id']}")
    for each in retained:
        site.call("DELETE", f"/servers/{each['id']}")
    assert not left(site, "configs", "deployments", "runs", "containers", "objects", "servers", "queues")
    assert not jobs_of(site)


def test_an_external_resource_is_not_deleted(site):
    """What another stack has made stays that stack's."""
    owner = stack(site, {"server": {"type": "OS::Heat::DeployedServer"}}, "owner")
    (server,) = site.call("GET", "/servers")["servers"]
    borrowed = {"type": "OS::Heat::DeployedServer", "external_id": server["id"], "deletion_policy": "Retain"}
    site.call("DELETE", stack(site, {"server": borrowed}))
    assert [each["stack_id"] for each in site.call("GET", "/servers")["servers"]] == [owner.rpartition("/")[2]]


@pytest.fixture
def server_id(site):
    return site.call("POST", "/servers", {"name": "web"})["server"]["id"]


def ordered(site, server_id, name, depends_on, status=200):
    options = {"depends_on": depends_on} if depends_on else {}
    config_id = software_config(site, name=name, options=options)
    body = {"server_id": server_id, "config_id": config_id, "signal_transport": "STOKER_SIGNAL"}
    return site.call("POST", "/software_deployments", body, status)


def test_a_config_with_an_invalid_option_for_runs_is_refused_with_its_name(site):
    said = site.call("POST", "/software_configs", {"group": "script", "options": {"memory_max": "much"}}, 400)
    assert "The option memory_max must be a size such as 512M, not 'much'" in said["error"]["message"]
    resources = {"app": {**config("true"), "properties": {**config("true")["properties"], "options": {"nice": 99}}}}
    said = site.call("POST", "/stacks", {"stack_name": "s", "template": template(resources)}, 400)
    assert "The option nice must be a number from -20 to 19" in said["error"]["message"]


def test_a_run_that_would_wait_for_itself_is_refused(site, server_id):
    said = ordered(site, server_id, "alone", "alone", 400)
    assert "depends_on of 'alone' names this deployment itself" in said["error"]["message"]
    assert ordered(site, server_id, "a", ["b"])["software_deployment"]["status_reason"] == "Waiting for the agent"
    ordered(site, server_id, "b", ["c"])
    said = ordered(site, server_id, "c", ["a"], 400)
    assert "forms a cycle on this server: c → a → b → c" in said["error"]["message"]
    last = ordered(site, server_id, "d", ["a", "absent"])["software_deployment"]
    assert last["status_reason"] == "Waiting for a on this server"


def test_a_run_of_a_stack_waits_for_the_resource_that_it_names(site, server_id):
    after = {**config("true"), "properties": {**config("true")["properties"], "options": {"depends_on": "install"}}}
    resources = {"plain": config("true"), "after": after}
    for name, config_name in (("install", "plain"), ("configure", "after")):
        resources[name] = deployment(config_name)
        resources[name]["properties"]["server"] = server_id
    stack(site, resources)
    found = site.call("GET", f"/software_deployments?server_id={server_id}")["software_deployments"]
    reasons = sorted(each["status_reason"] for each in found)
    assert reasons == ["Waiting for install on this server", "Waiting for the agent"]


def test_only_requests_of_stokers_own_are_checked_for_their_inputs(site):
    config_id = software_config(site, inputs=[{"name": "items", "type": "Number"}])
    software_deployment(site, config_id=config_id, input_values={"itemz": 1, "items": "many", "a b": 1})  # Heat's own
    own = {"config_id": config_id, "server_id": "s", "signal_transport": "STOKER_SIGNAL"}
    for values, words in (({"items": 1, "itemz": 1}, 'no input "itemz"'), ({}, 'needs a value for "items"')):
        refused = site.call("POST", "/software_deployments", {**own, "input_values": values}, 400)
        assert words in refused["error"]["message"]
    assert len(site.call("GET", "/software_deployments")["software_deployments"]) == 1
    values = {"items": "4", "more": 1}
    made = software_deployment(site, **own, input_values=values, allow_undeclared=True)
    assert made["input_values"] == {"items": 4, "more": 1}
