"""The agents' own protocol, spoken by hand to a real server."""

from __future__ import annotations

import http.client
import json
from collections.abc import Callable, Iterator, Sequence
from contextlib import closing, contextmanager
from typing import Any

import pytest

from stoker.deployments.documents import Document
from stoker.model.server import Machine
from stoker.servers import enrollment
from stoker.servers.redemption import Redemption, redeem_token
from support.agent_protocol import SpokenAgent, deploy, enroll, shown, trade
from support.sockets import until_read

WITH_MODES = "1.0; hooks=script; modes=preview,undo,check"


@contextmanager
def held_poll(agent: SpokenAgent, etag: str = "") -> Iterator[Callable[[], Any]]:
    """Poll with an ETag, by default the present document's; yields a function that awaits the answer's body."""
    etag = etag or agent.document(X_Stoker_Agent=WITH_MODES).headers["ETag"]
    with closing(http.client.HTTPConnection("127.0.0.1", agent.stoker.port, timeout=60)) as poll:
        headers = {"Authorization": f"Bearer {agent.key}", "If-None-Match": etag, "X-Stoker-Agent": WITH_MODES}
        poll.request("GET", "/agent/v1/document?wait=40", headers=headers)
        until_read(poll.sock)
        yield lambda: json.loads(poll.getresponse().read())


def test_polls_are_answered_by_changes(agent, stoker):
    answer = agent.document()
    etag = answer.headers["ETag"]
    assert (answer.body["server_id"], answer.body["deployments"]) == (agent.id, [])
    assert etag == f'"{answer.body["revision"]}"'
    unchanged = agent.document(wait=1, etag=etag)
    assert (unchanged.status, unchanged.raw, unchanged.headers["ETag"]) == (304, b"", etag)
    with held_poll(agent, etag) as await_document:
        deployment = deploy(stoker, agent.id, inputs=[{"name": "a"}], input_values={"a": "b"})
        document = await_document()
    (entry,) = document["deployments"]
    assert (entry["deployment_id"], entry["id"]) == (deployment["id"], deployment["config_id"])
    assert (entry["group"], entry["config"]) == ("script", "#!/bin/sh\n")
    assert {each["name"]: each["value"] for each in entry["inputs"]}["a"] == "b"
    assert document["revision"] != answer.body["revision"]


def test_results_do_not_send_the_rest_of_the_document_again(agent, stoker):
    """An agent with n runs in hand would read n documents of up to n runs."""
    made = [deploy(stoker, agent.id) for _ in range(6)]
    with held_poll(agent) as await_document:
        for deployment in made[:4]:
            assert agent.finish(deployment["config_id"]).status == 200
            assert shown(stoker, deployment)["status"] == "COMPLETE"
        new = deploy(stoker, agent.id)
        entries = await_document()["deployments"]
    assert [entry["deployment_id"] for entry in entries] == [each["id"] for each in (*made[4:], new)]
    assert len(agent.document().body["deployments"]) == 3


def test_an_agent_that_polls_after_its_report_gets_the_rest_at_the_end_of_its_wait(agent, stoker):
    done, left = deploy(stoker, agent.id), deploy(stoker, agent.id)
    etag = agent.document(X_Stoker_Agent=WITH_MODES).headers["ETag"]
    agent.finish(done["config_id"])
    with held_poll(agent, etag) as await_document:
        new = deploy(stoker, agent.id)
        entries = await_document()["deployments"]
    assert [entry["deployment_id"] for entry in entries] == [left["id"], new["id"]]
    etag = agent.document(X_Stoker_Agent=WITH_MODES).headers["ETag"]
    agent.finish(left["config_id"])
    rest = agent.document(wait=1, etag=etag, X_Stoker_Agent=WITH_MODES)
    assert (rest.status, [entry["id"] for entry in rest.body["deployments"]]) == (200, [new["config_id"]])


@pytest.mark.parametrize("reported", ["before its poll", "during its poll"])
def test_the_deletion_of_a_run_that_the_agent_has_reported_leaves_its_poll_open(agent, stoker, reported):
    ended = deploy(stoker, agent.id)
    if reported == "before its poll":
        agent.finish(ended["config_id"])
    with held_poll(agent) as await_document:
        agent.finish(ended["config_id"])
        assert stoker.heat("DELETE", f"/software_deployments/{ended['id']}").status == 204
        new = deploy(stoker, agent.id)
        entries = await_document()["deployments"]
    assert [entry["deployment_id"] for entry in entries] == [new["id"]]


def test_the_deletion_of_a_checked_deployment_is_sent_to_its_agent(agent, stoker):
    deployment = deploy(stoker, agent.id, options={"check_interval": 3600})
    agent.finish(deployment["config_id"])
    with held_poll(agent) as await_document:
        assert stoker.heat("DELETE", f"/software_deployments/{deployment['id']}").status == 204
        assert "checks" not in await_document()


def test_an_agent_without_its_document_gets_the_rest_at_once(agent, stoker):
    """As after its restart, or through a relay, which does not wait."""
    done, left = deploy(stoker, agent.id), deploy(stoker, agent.id)
    etag = agent.document().headers["ETag"]
    agent.finish(done["config_id"])
    for answer in (agent.document(), agent.document(etag=etag), agent.document(wait=40, etag='"1"')):
        assert [entry["id"] for entry in answer.body["deployments"]] == [left["config_id"]]
        agent.finish(done["config_id"])


def test_results_do_not_delay_a_cancellation_or_a_withdrawal(agent, stoker):
    first, second, third = (deploy(stoker, agent.id) for _ in range(3))
    with held_poll(agent) as await_document:
        agent.finish(first["config_id"])
        assert stoker.heat("POST", f"/software_deployments/{second['id']}/cancel").status == 202
        entries = await_document()["deployments"]
    assert [(entry["id"], entry.get("cancel")) for entry in entries] == [
        (second["config_id"], True),
        (third["config_id"], None),
    ]
    with held_poll(agent) as await_document:
        agent.finish(second["config_id"], 1)
        ended = {"status": "COMPLETE", "output_values": {}}
        assert stoker.heat("PUT", f"/software_deployments/{third['id']}", ended).status == 200
        assert await_document()["deployments"] == []


def test_the_end_of_a_checked_run_is_sent_to_its_agent_which_checks_the_effect(agent, stoker):
    deployment = deploy(stoker, agent.id, options={"check_interval": 3600})
    with held_poll(agent) as await_document:
        agent.finish(deployment["config_id"])
        document = await_document()
    assert (document["deployments"], [check["id"] for check in document["checks"]]) == ([], [deployment["config_id"]])


def test_a_held_poll_of_a_replaced_machine_gets_no_document(agent, stoker):
    deploy(stoker, agent.id)
    with held_poll(agent) as await_answer:
        again = stoker.heat("POST", "/servers", {"name": agent.name, "again": True})
        assert trade(stoker, again.body["enrollment"]["token"], "another machine").status == 201
        assert await_answer()["code"] == 401


def test_a_signal_completes_once_and_may_be_repeated(agent, stoker):
    deployment = deploy(stoker, agent.id)
    path = f"/runs/{deployment['config_id']}/signal"
    said = {"deploy_stdout": "out", "deploy_stderr": "", "deploy_status_code": 0, "result": {"deep": [1]}}
    for values in (said, said, {**said, "deploy_status_code": 1}):
        answer = agent.call("POST", path, values)
        assert (answer.status, answer.body) == (200, {"status": "COMPLETE"})
    found = shown(stoker, deployment)
    assert (found["status"], found["output_values"]["result"]) == ("COMPLETE", {"deep": [1]})
    assert agent.entries() == []


def test_a_signal_of_950_kilobytes_with_odd_characters_is_stored_completely(agent, stoker):
    deployment = deploy(stoker, agent.id)
    text = "\0\x1b☃" + "x" * 949_000
    assert agent.finish(deployment["config_id"], deploy_stdout=text, deploy_stderr="").status == 200
    assert shown(stoker, deployment)["output_values"]["deploy_stdout"] == text


def test_the_reason_why_a_run_waits_is_its_status_reason(agent, stoker):
    deployment = deploy(stoker, agent.id)
    path = f"/runs/{deployment['config_id']}/progress"
    assert agent.call("POST", path, {"state": "WAITING", "message": "no space"}).status == 204
    assert shown(stoker, deployment)["status_reason"] == "Waiting: no space"
    assert agent.call("POST", path, {"state": "RUNNING"}).status == 204
    assert shown(stoker, deployment)["status_reason"] == "Running"
    assert agent.finish(deployment["config_id"]).status == 200
    assert agent.call("POST", path, {"state": "WAITING", "message": "late"}).status == 204
    assert "late" not in shown(stoker, deployment)["status_reason"]


@pytest.mark.parametrize("wrong", [b"[]", b'{"percent": 101}', b'{"state": "by <b>it</b>"}', b'{"state": "DONE"}'])
def test_invalid_progress_changes_nothing(agent, stoker, wrong):
    deployment = deploy(stoker, agent.id)
    assert agent.call("POST", f"/runs/{deployment['config_id']}/progress", wrong).status == 400
    assert shown(stoker, deployment)["status_reason"] == "Waiting for the agent"


def test_invalid_offsets_of_output_and_more_than_a_call_may_carry_are_refused(agent, stoker):
    path = f"/runs/{deploy(stoker, agent.id)['config_id']}/logs"
    for query in ("", "stream=stdlog&offset=0", "stream=stdout&offset=-1", "stream=stdout&offset=x"):
        assert agent.call("POST", f"{path}?{query}", b"x").status == 400
    path += "?stream=stdout&offset=0"
    assert agent.call("POST", path, b"x" * 256 * 1024).body == {"offset": 256 * 1024}
    assert agent.call("POST", path, b"x" * (256 * 1024 + 1)).status == 400


def test_missing_and_wrong_keys_and_user_tokens_are_refused(agent, stoker):
    last = "A" if agent.key[-1] != "A" else "B"
    wrong = ["", "Bearer", "Bearer ", "Bearer x", f"Bearer {agent.key[:-2]}{last}", f"Basic {agent.key}"]
    wrong += [f"Bearer {stoker.token}", f"Bearer {agent.id}."]
    for each in wrong:
        answer = stoker.request("GET", "/agent/v1/document", headers={"Authorization": each})
        assert answer.status == 401, each
        assert answer.body["error"]["message"]
    assert stoker.request("GET", "/agent/v1/document").status == 401
    assert stoker.request("GET", f"/v1/{stoker.project}/stacks", headers={"X-Auth-Token": agent.key}).status == 401


def test_the_history_tells_what_a_run_changed_without_secrets(agent, stoker):
    inputs = [{"name": "word", "secret": True}]
    made = deploy(stoker, agent.id, inputs=inputs, input_values={"word": "s3cret-word"})
    change = {"item": "/etc/secret.conf", "outcome": "changed", "diff": "+password=s3cret-word"}
    assert agent.finish(made["config_id"], deploy_changed=True, deploy_changes=[change]).status == 200
    assert (shown(stoker, made)["changed"], shown(stoker, made)["changed_items"]) == (True, 1)
    path = f"/software_deployments/{made['id']}"
    again = stoker.heat("PUT", path, {"status": "IN_PROGRESS"}).body["software_deployment"]
    assert agent.finish(again["config_id"], deploy_changed=False).status == 200
    assert (shown(stoker, made)["changed"], shown(stoker, made)["changed_items"]) == (False, 0)
    runs = stoker.heat("GET", f"{path}/runs").body["runs"]
    assert [(run["changed"], run["changes"]) for run in runs] == [
        (False, []),
        (True, [{**change, "diff": "+password=******"}]),
    ]


def test_only_the_agent_reads_a_secret_input(agent, stoker):
    inputs = [{"name": "word", "secret": True}, {"name": "open"}]
    values = {"word": "s3cret", "open": "plain"}
    made = deploy(stoker, agent.id, inputs=inputs, input_values=values)
    starred = {"word": "******", "open": "plain"}

    def told():
        (entry,) = agent.document().body["deployments"]
        return {each["name"]: each["value"] for each in entry["inputs"] if each["name"] in values}

    def seen(config_id):
        config = stoker.heat("GET", f"/software_configs/{config_id}").body["software_config"]
        return {each["name"]: each["value"] for each in config["inputs"] if each["name"] in values}

    assert told() == values
    assert seen(made["config_id"]) == made["input_values"] == starred
    agent.finish(made["config_id"], 1)
    again = stoker.heat("POST", f"/software_deployments/{made['id']}/retry").body["software_deployment"]
    assert told() == values
    assert seen(again["config_id"]) == shown(stoker, made)["input_values"] == starred
    runs = stoker.heat("GET", f"/software_deployments/{made['id']}/runs").body["runs"]
    assert [each["input_values"] for each in runs] == [starred, starred]


def test_the_longest_names_fit_into_the_audit_log(stoker):
    server, token = enroll(stoker, "n" * 255)
    assert trade(stoker, token).status == 201
    body = {"token": token, "instance": "another", "hostname": "h" * 255, "agent": {"version": "1", "hooks": []}}
    assert stoker.request("POST", "/agent/v1/enroll", body).status == 401
    entries = stoker.heat("GET", f"/audit?server_id={server['id']}").body["audit"]
    actors = [entry["actor"] for entry in entries if entry["action"] == "enroll"]
    assert [(actor[:13], len(actor)) for actor in actors[:2]] == [("h" * 13, 255), ("the agent of ", 255)]


def test_a_machine_that_is_replaced_while_its_document_is_read_gets_none(site, store, monkeypatch):
    app = site.services

    def join(instance: str, **more: Any) -> Redemption:
        token = store.write(lambda tx: enrollment.enroll(tx, site.project, "web", **more))[2]
        return store.write(lambda tx: redeem_token(tx, app.servers.keys, token, Machine(instance=instance)))

    first = join("a machine")

    def load_late(wanted: Sequence[tuple[str, bool]]) -> list[Document]:
        join("another machine", again=True)
        return app.documents.load_agents(wanted)

    monkeypatch.setattr(app.agent_batches.documents, "_handle", load_late)
    answer = site.client.get("/agent/v1/document", headers={"Authorization": f"Bearer {first.key}"})
    assert (answer.status_code, "deployments" in answer.text) == (401, False)
