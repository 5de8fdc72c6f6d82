"""A deployment goes out over a real Swift or Zaqar, and its result comes back over it."""

from __future__ import annotations

import json

import pytest

from support.agent_protocol import spoken_agent
from support.backends import (
    CLIENT,
    RESULT,
    QueueAgent,
    ask,
    greeting,
    popped,
    queues_of,
    reporter,
    runs,
    swift_flags,
    until_document,
    zaqar_flags,
)
from support.server import served


@pytest.mark.parametrize("calls", [True, False])
def test_queues_carry_documents_and_results(tmp_path, database_url, zaqar, calls):
    flags = (*zaqar_flags(zaqar), "--signal-webhooks" if calls else "--no-signal-webhooks")
    with served(tmp_path, *flags, database=database_url) as stoker:
        stack = stoker.create_stack("queues", greeting("ZAQAR_MESSAGE", "ZAQAR_SIGNAL"))
        known = stoker.outputs(stack)["agent"]["zaqar"]
        agent = QueueAgent(known)
        assert agent.login[0] == zaqar.url
        (run,) = popped(stoker, agent, "world")
        queue = run["deploy_queue_id"]
        stoker.until(lambda: subscribers(zaqar, stoker, queue) == [True] * calls)
        # As heat-config-notify does: JSON in a text.
        assert reporter(run).post(queue, json.dumps({**RESULT, "said": "hello"})) == 201
        stoker.await_stack(stack)
        assert stoker.outputs(stack)["d0"] == "hello"
        assert stoker.heat("DELETE", stack).status == 204
        stoker.until(lambda: not queues_of(zaqar, stoker.project) & {queue, known["queue_id"]})


def subscribers(zaqar, stoker, queue):
    """Whether each of those who are called for a queue has agreed to it; only Stoker is."""
    headers = {**CLIENT, "X-Project-Id": stoker.project}
    found = ask("GET", f"{zaqar.url}/v2/queues/{queue}/subscriptions", headers=headers).body["subscriptions"]
    assert all(each["subscriber"].startswith(f"{stoker.url}/signals/") for each in found)
    return [each["confirmed"] for each in found]


def test_a_late_result_of_an_earlier_run_does_not_end_the_current_one(tmp_path, database_url, channel):
    with served(tmp_path, *channel.flags(channel.peer, tmp_path), database=database_url) as stoker:
        stack = stoker.create_stack("late", greeting(*channel.transports))
        reports = [channel.open_report(stoker, channel.await_run(stoker, stack))]
        assert stoker.heat("PUT", stack, {"template": greeting(*channel.transports, "moon")}).status == 202
        reports.append(channel.open_report(stoker, channel.await_run(stoker, stack, "moon")))
        for report, said in zip(reports, ("late", "current"), strict=True):
            report({**RESULT, "said": said})
        stoker.until(lambda: stoker.stack(stack)["stack_status"] == "UPDATE_COMPLETE", 60)
        assert stoker.outputs(stack)["d0"] == "current"


@pytest.mark.parametrize("is_dropped", [True, False])
def test_the_run_of_a_delete_action_reports_its_result(tmp_path, database_url, swift, is_dropped):
    """The stack is deleted, or its template loses the deployment."""
    with served(tmp_path, *swift_flags(swift, tmp_path), database=database_url) as stoker:
        said = greeting("POLL_TEMP_URL", "TEMP_URL_SIGNAL")
        said["resources"]["d0"]["properties"]["actions"] = ["CREATE", "DELETE"]
        stack = stoker.create_stack("deleting", said)
        document = stoker.outputs(stack)["agent"]["request"]["metadata_url"]
        (run,) = until_document(stoker, document, "world")
        assert ask("PUT", run["deploy_signal_id"], RESULT).status == 201
        stoker.until(lambda: stoker.stack(stack)["stack_status"] == "CREATE_COMPLETE", 60)
        if is_dropped:
            without = greeting("POLL_TEMP_URL", "TEMP_URL_SIGNAL", count=0)
            assert stoker.heat("PUT", stack, {"template": without}).status == 202
        else:
            assert stoker.heat("DELETE", stack).status == 204
        stoker.until(lambda: runs(ask("GET", document).body)[0]["deploy_action"] == "DELETE", 60)
        (run,) = runs(ask("GET", document).body)
        assert ask("PUT", run["deploy_signal_id"], RESULT).status == 201
        stoker.await_stack(stack, "UPDATE_COMPLETE" if is_dropped else "DELETE_COMPLETE")
        stoker.until(lambda: ask("HEAD", run["deploy_signal_id"]).status == 404)
        if is_dropped:
            stoker.until(lambda: runs(ask("GET", document).body) == [], 60)


def test_a_deployment_without_a_resource_reports_its_result(tmp_path, database_url, channel):
    is_object = channel.transports[1] == "TEMP_URL_SIGNAL"
    with served(tmp_path, *channel.flags(channel.peer, tmp_path), database=database_url) as stoker:
        config = stoker.heat("POST", "/software_configs", {"outputs": [{"name": "said"}]}).body["software_config"]["id"]
        agent = spoken_agent(stoker)
        wanted = {"config_id": config, "server_id": agent.id, "signal_transport": channel.transports[1]}
        made = stoker.heat("POST", "/software_deployments", wanted).body["software_deployment"]
        path = f"/software_deployments/{made['id']}"

        def shown():
            return stoker.heat("GET", path).body["software_deployment"]

        for code, ended in ((3, "FAILED"), (0, "COMPLETE")):
            # As the server's agent gets them, with the credentials for its report.
            (run,) = (run for run in runs(agent.document().body) if run["id"] == shown()["config_id"])
            report = channel.open_report(stoker, run)
            if is_object:  # what is no result changes nothing, and the next one is heard all the same
                report("hello")
                report({**RESULT, "deploy_stdout": "x" * (16 * 1024 * 1024)})
                stoker.until(lambda: "16 MiB" in stoker.output)
            report({**RESULT, "said": "hello", "deploy_status_code": code})
            stoker.until(lambda ended=ended: shown()["status"] == ended, 60)
            if code:
                assert "non-zero status code: 3" in shown()["status_reason"]
                assert stoker.heat("POST", f"{path}/retry").status == 202
        assert stoker.heat("DELETE", path).status == 204
        if is_object:
            stoker.until(lambda: ask("HEAD", run["deploy_signal_id"]).status == 404)
        else:
            stoker.until(lambda: run["deploy_queue_id"] not in queues_of(channel.peer, stoker.project))
