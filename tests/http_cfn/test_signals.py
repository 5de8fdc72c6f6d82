"""Pre-signed URLs: each for one resource, one verb, and no longer than that is there."""

from __future__ import annotations

import json
import re

import pytest

from support.backends import CLIENT, ask, greetings, log_in, runs, signature_headers
from support.reports import document, report
from support.server import Answer, Served
from support.signatures import signed
from support.templates import config, define, deployment, server, template

DONE = {"status": "SUCCESS", "reason": "why", "data": "said", "id": "1"}


def below(stoker: Served, url: str) -> str:
    return url.removeprefix(stoker.url)


def waiting() -> dict:
    handle = define("OS::Heat::WaitConditionHandle", signal_transport="CFN_SIGNAL")
    condition = define("OS::Heat::WaitCondition", handle={"get_resource": "one way"}, timeout=60)
    return template(
        {"one way": handle, "condition": condition, "other": handle},
        outputs={name: {"value": {"get_attr": [name, "signal"]}} for name in ("one way", "other")},
    )


def test_a_wait_condition_is_signalled_by_its_url_alone(stoker) -> None:
    path = stoker.create_stack("condition", waiting())
    url = below(stoker, json.loads(stoker.outputs(path)["one way"])["alarm_url"])
    assert stoker.request("POST", url, DONE).status == 405, "the verb is not its"
    assert stoker.request("PUT", url + "x", DONE).status == 403
    assert stoker.request("PUT", url.replace("one%2520way", "other"), DONE).status == 403
    assert stoker.request("PUT", url, {"Status": "SUCCESS"}).status == 400
    assert stoker.request("PUT", url, {}).status == 400
    assert stoker.request("PUT", url, b"not json").status == 400
    assert stoker.stack(path)["stack_status"] == "CREATE_IN_PROGRESS"
    taken = stoker.request("PUT", url, DONE)
    assert (taken.status, taken.raw) == (200, b"<resource>one way</resource>")
    assert stoker.stack(path)["stack_status"] == "CREATE_COMPLETE"
    assert stoker.heat("DELETE", path).status == 204
    assert stoker.request("PUT", url, DONE).status == 403, "gone with its resource"


def test_a_deployment_is_signalled_by_its_url(stoker) -> None:
    said = template(
        {"config": config(), "server": server(), "one": deployment(signal_transport="CFN_SIGNAL")},
        outputs={"id": {"value": {"get_resource": "server"}}},
    )
    path = stoker.create_stack("deployment", said)
    told = document(stoker, stoker.outputs(path)["id"])
    inputs = {each["name"]: each["value"] for each in told[0]["inputs"]}
    assert inputs["deploy_signal_verb"] == "POST"
    url = below(stoker, inputs["deploy_signal_id"])
    assert stoker.request("PUT", url, {}).status == 405
    for invalid in (b'{"deploy_status_code": 0', b"[1]", b'"text"'):
        assert stoker.request("POST", url, invalid).status == 400
    assert stoker.stack(path)["stack_status"] == "CREATE_IN_PROGRESS"
    assert stoker.request("POST", url, {"deploy_status_code": 0, "deploy_stdout": "x" * 900_000}).status == 200
    assert stoker.stack(path)["stack_status"] == "CREATE_COMPLETE"
    assert stoker.request("POST", url, {"deploy_status_code": 1}).status == 200, "late: it changes nothing"
    assert stoker.stack(path)["stack_status"] == "CREATE_COMPLETE"


@pytest.mark.parametrize("transport", ["POLL_SERVER_CFN", "POLL_SERVER_HEAT"])
def test_a_servers_login_reads_only_its_own_metadata(stoker, transport) -> None:
    resources = {key: server(key, software_config_transport=transport) for key in ("server", "other")}
    agents = {"agent": {"value": {"get_attr": ["server", "os_collect_config"]}}}
    path = stoker.create_stack(f"login-{transport.lower()}", template(resources, outputs=agents))
    agent = stoker.outputs(path)["agent"]
    name, id = path.split("/")[2:]
    if transport == "POLL_SERVER_CFN":
        access, secret = agent["cfn"]["access_key_id"], agent["cfn"]["secret_access_key"]

        def ask(**params: str) -> int:
            return stoker.request("GET", signed(stoker, access, secret, StackName=name, **params)).status

        assert ask(Action="DescribeStackResource", LogicalResourceId="server") == 200
        assert stoker.heat("POST", f"/stacks/{name}/{id}/actions", {"suspend": None}).status == 200
        assert ask(Action="DescribeStackResource", LogicalResourceId="server") == 403
        assert stoker.heat("POST", f"/stacks/{name}/{id}/actions", {"resume": None}).status == 200
        assert ask(Action="DescribeStackResource", LogicalResourceId="server") == 200
        for resource in ("other", "nothing"):
            assert ask(Action="DescribeStackResource", LogicalResourceId=resource) == 403
        assert ask(Action="DescribeStackResources") == 403
        assert stoker.heat("DELETE", f"/stacks/{name}/{id}").status == 204
        assert ask(Action="DescribeStackResource", LogicalResourceId="server") == 403
    else:
        heat = agent["heat"]
        login = log_in(heat)
        assert [role["name"] for role in login.body["token"]["roles"]] == ["heat_stack_user"]
        token = {"X-Auth-Token": login.headers["X-Subject-Token"]}
        base = f"/v1/{heat['project_id']}"

        def read(rest: str, verb: str = "GET") -> int:
            return stoker.request(verb, f"{base}{rest}", headers=token).status

        resource = f"/stacks/{heat['stack_id']}/resources"
        assert read(f"{resource}/server/metadata") == 200
        assert read(f"{resource}/other/metadata") == read(f"{resource}/other/signal", "POST") == 403
        me = f"/identity/v3/users/{heat['user_id']}"
        assert stoker.request("GET", f"{me}/application_credentials", headers=token).status == 200
        assert stoker.request("POST", f"{me}/application_credentials", {}, token).status == 403
        assert stoker.heat("DELETE", f"/stacks/{name}/{id}").status == 204
        assert read(f"{resource}/server/metadata") in (401, 403), "gone with its resource"


def test_a_signed_url_of_a_queue_ends_when_its_owner_is_suspended_or_deleted(stoker) -> None:
    signed_queues = greetings("ZAQAR_MESSAGE", {"one": "ZAQAR_SIGNAL"}, script="true", agent="stoker")
    path = stoker.create_stack("signed-queues", signed_queues)
    section = stoker.outputs(path)["agent"]["zaqar"]

    def call(verb: str, said: dict, prefix: str, body: object = None) -> Answer:
        url = f"{said[f'{prefix}messaging_url']}/v2/queues/{said[f'{prefix}queue_id']}/messages"
        return ask(verb, url, body, signature_headers(said, prefix))

    stoker.until(lambda: call("GET", section, "").body["messages"] != [])
    [message] = call("GET", section, "").body["messages"]
    [run] = runs(message["body"])
    assert not [name for name in run if re.search("password|user|auth", name)]

    def answers() -> list[int]:
        result = {"messages": [{"body": {"deploy_status_code": 0}}]}
        return [call("POST", run, "deploy_", result).status, call("GET", section, "").status]

    assert answers() == [201, 200]
    assert stoker.stack(path)["stack_status"] == "CREATE_COMPLETE"
    for action, expected in (("suspend", [404, 404]), ("resume", [201, 200])):
        assert stoker.heat("POST", f"{path}/actions", {action: None}).status == 200
        stoker.await_stack(path, f"{action.upper()}_COMPLETE")
        assert answers() == expected
    assert stoker.heat("DELETE", path).status == 204
    stoker.until(lambda: answers() == [404, 404])
    assert not {section["queue_id"], run["deploy_queue_id"]} & places(stoker)


def test_a_swift_signal_is_written_to_an_object(stoker) -> None:
    handle = {"type": "OS::Heat::SwiftSignalHandle"}
    waits = define("OS::Heat::SwiftSignal", handle={"get_resource": "handle"}, timeout=60, count=2)
    names = ("endpoint", "token", "curl_cli")
    told = {name: {"value": {"get_attr": ["handle", name]}} for name in names}
    told["data"] = {"value": {"get_attr": ["waits", "data"]}}
    path = stoker.create_stack("swift-signal", template({"handle": handle, "waits": waits}, outputs=told))
    said = stoker.outputs(path)
    assert said["token"] == ""
    url = below(stoker, said["endpoint"])
    assert stoker.request("POST", url, {}).status == 401
    assert stoker.request("PUT", url, b"no json").status == 400
    assert stoker.request("PUT", url, {"status": "PERHAPS"}).status == 400
    assert stoker.request("PUT", url, b"").status == 201
    assert stoker.stack(path)["stack_status"] == "CREATE_IN_PROGRESS"
    assert stoker.request("PUT", url, {"id": "second", "data": [1]}).status == 201
    assert stoker.stack(path)["stack_status"] == "CREATE_COMPLETE"
    assert json.loads(stoker.outputs(path)["data"]) == {"1": None, "second": [1]}
    assert stoker.heat("DELETE", path).status == 204
    assert stoker.request("PUT", url, {}).status == 404
    account = stoker.request("GET", f"/object-store/v1/AUTH_{stoker.project}", headers={"X-Auth-Token": stoker.token})
    assert path.rsplit("/", 1)[1] not in account.raw.decode(), "its container is gone"


@pytest.mark.parametrize("transport", ["CFN_SIGNAL", "HEAT_SIGNAL", "TEMP_URL_SIGNAL", "ZAQAR_SIGNAL"])
@pytest.mark.parametrize("action", ["UPDATE", "DELETE", "SUSPEND"])
def test_runs_of_actions_that_end_a_deployment_report_their_result(stoker, transport, action) -> None:
    """An update drops the deployment from the template."""
    name = f"going-{transport.lower()}-{action.lower()}"
    one = deployment(signal_transport=transport, actions=["CREATE", "DELETE", "SUSPEND"])
    rest = {"config": config(), "server": server(name)}
    told = {"id": {"value": {"get_resource": "server"}}}
    path = stoker.create_stack(name, template({**rest, "one": one}, outputs=told))
    server_id = stoker.outputs(path)["id"]
    report(stoker, document(stoker, server_id)[0])
    assert stoker.stack(path)["stack_status"] == "CREATE_COMPLETE"
    match action:
        case "UPDATE":
            assert stoker.heat("PUT", path, {"template": template(rest, outputs=told)}).status == 202
        case "DELETE":
            assert stoker.heat("DELETE", path).status == 204
        case "SUSPEND":
            assert stoker.heat("POST", f"{path}/actions", {"suspend": None}).status == 200
    assert stoker.stack(path)["stack_status"] == f"{action}_IN_PROGRESS"
    run = document(stoker, server_id)[0]
    report(stoker, run)
    assert stoker.stack(path)["stack_status"] == f"{action}_COMPLETE"
    if (transport, action) == ("CFN_SIGNAL", "SUSPEND"):
        with pytest.raises(AssertionError, match="AccessDenied"):
            report(stoker, run)  # suspended by now


def one_run(name: str, transport: str, word: str) -> dict:
    """A deployment of ``word`` to the server ``name``. The outputs are the ids of both."""
    one = deployment(signal_transport=transport, input_values={"word": word})
    ids = {name: {"value": {"get_resource": name}} for name in ("server", "one")}
    return template({"config": config(), "server": server(name), "one": one}, outputs=ids)


@pytest.mark.parametrize("transport", ["CFN_SIGNAL", "HEAT_SIGNAL", "TEMP_URL_SIGNAL", "ZAQAR_SIGNAL"])
def test_a_late_result_of_an_earlier_run_changes_nothing(stoker, transport) -> None:
    name = f"late-{transport.lower()}"
    before = places(stoker)
    path = stoker.create_stack(name, one_run(name, transport, "first"))
    server_id = stoker.outputs(path)["server"]
    first = document(stoker, server_id)[0]
    assert stoker.heat("PUT", path, {"template": one_run(name, transport, "second")}).status == 202
    report(stoker, first, {"deploy_status_code": 0, "deploy_config_id": first["id"]})
    report(stoker, first)  # as heat-agents write it: only the URL or queue says which run it is
    assert stoker.stack(path)["stack_status"] == "UPDATE_IN_PROGRESS"
    second = document(stoker, server_id)[0]
    report(stoker, second, {"deploy_status_code": 0, "deploy_config_id": second["id"]})
    assert stoker.stack(path)["stack_status"] == "UPDATE_COMPLETE"
    assert len(places(stoker) - before) == 1 + (transport in ("TEMP_URL_SIGNAL", "ZAQAR_SIGNAL"))
    assert stoker.heat("DELETE", path).status == 204
    assert places(stoker) == before


def places(stoker: Served) -> set[str]:
    """Return the names of all objects and queues of the project."""
    headers, account = {"X-Auth-Token": stoker.token, **CLIENT}, f"/object-store/v1/AUTH_{stoker.project}"
    containers = stoker.request("GET", account, headers=headers).raw.decode().split()
    objects = [stoker.request("GET", f"{account}/{name}", headers=headers).raw.decode().split() for name in containers]
    queues = stoker.request("GET", "/messaging/v2/queues?limit=20", headers=headers).body["queues"]
    return {name for names in objects for name in names} | {queue["name"] for queue in queues}


def test_a_signal_that_changes_nothing_leaves_a_log_event(stoker) -> None:
    path = stoker.create_stack("rejecting", one_run("rejecting", "CFN_SIGNAL", "first"))
    server_id, id = (stoker.outputs(path)[name] for name in ("server", "one"))
    first = document(stoker, server_id)[0]
    assert stoker.heat("PUT", path, {"template": one_run("rejecting", "CFN_SIGNAL", "second")}).status == 202
    second = document(stoker, server_id)[0]
    report(stoker, first)
    report(stoker, second, {"deploy_status_code": 0, "deploy_config_id": first["id"]})
    report(stoker, second)
    report(stoker, second)
    for run in ("", "?run=3"):
        assert stoker.heat("POST", f"/software_deployments/{server_id}/signal{run}", {}).status == 404
    superseded, ended = "the run is not the current one of its deployment", "the run has ended: COMPLETE"
    unknown = f"The Software deployment ({server_id}) could not be found."
    assert rejections(stoker, id, server_id) == [
        (id, "1", superseded),
        (id, first["id"], superseded),
        (id, second["id"], ended),
        (server_id, None, unknown),
        (server_id, "3", unknown),
    ]


def rejections(stoker: Served, *ids: str) -> list[tuple[str, str | None, str]]:
    lines = stoker.state_dir.joinpath("logs", "stoker.log").read_text().splitlines()
    events = [event for event in map(json.loads, lines) if event["event"] == "signal.rejected"]
    return [
        (event["deployment_id"], event["run"], event["reason"]) for event in events if event["deployment_id"] in ids
    ]
