"""Previews on servers: the real agent's hooks show what they would change, and change nothing."""

from __future__ import annotations

import json
import os
from collections.abc import Iterator

import pytest

from support import templates
from support.agent_protocol import deploy, spoken_agent
from support.agents import OwnAgent, enrolled_agent
from support.templates import define, on

pytestmark = pytest.mark.slow


@pytest.fixture
def agent(stoker, tmp_path, request) -> Iterator[OwnAgent]:
    """The real agent."""
    name = f"{request.node.name.partition('[')[0][5:40]}-{os.urandom(3).hex()}"
    with enrolled_agent(tmp_path / "agent", stoker, name) as running:
        yield running


def server_of(stoker, agent):
    """The id of the agent's server, after its first poll: Stoker then knows the modes of the agent."""
    id = agent.spoken.id
    stoker.until(lambda: stoker.heat("GET", f"/servers/{id}").body["server"]["status"] == "ONLINE")
    return id


def run(stoker, server, **body):
    """The ended trigger of a config on a server, with its target."""
    path = f"/software_triggers/{stoker.create('software_triggers', servers=[server], **body)['id']}"
    stoker.until(lambda: stoker.heat("GET", path).body["software_trigger"]["status"] != "IN_PROGRESS", 120)
    trigger = stoker.heat("GET", path).body["software_trigger"]
    return trigger, trigger["targets"][0]


def test_a_preview_of_a_file_shows_the_difference_and_writes_nothing(stoker, agent, tmp_path):
    server = server_of(stoker, agent)
    path = tmp_path / "motd"
    path.write_text("old\n")
    id_ = stoker.create_config({"path": str(path), "content": "new\n"}, group="file", name="motd")

    trigger, target = run(stoker, server, config_id=id_, mode="PREVIEW")

    assert (trigger["status"], trigger["mode"], trigger["changed"]) == ("COMPLETE", "PREVIEW", 1)
    assert trigger["status_reason"] == "Succeeded: 1 would change, 0 unchanged"
    assert (target["run"]["mode"], target["run"]["changed"]) == ("preview", True)
    (change,) = target["run"]["changes"]
    assert "-old" in change["diff"]
    assert "+new" in change["diff"]
    assert path.read_text() == "old\n"

    # another run of the same deployment is a preview, too
    deployment = f"/software_deployments/{target['deployment_id']}"
    stoker.heat("PUT", deployment, {"status": "IN_PROGRESS"})
    stoker.until(lambda: stoker.heat("GET", deployment).body["software_deployment"]["status"] == "COMPLETE", 60)
    runs = stoker.heat("GET", f"{deployment}/runs").body["runs"]
    assert [each["mode"] for each in runs] == ["preview", "preview"]
    assert path.read_text() == "old\n"

    applied, _ = run(stoker, server, config_id=id_)
    assert (applied["changed"], path.read_text()) == (1, "new\n")
    again, target = run(stoker, server, config_id=id_, mode="PREVIEW")
    assert (again["changed"], again["unchanged"], target["changed"]) == (0, 1, False)


def test_a_difference_shows_neither_the_present_nor_the_next_secret(stoker, agent, tmp_path):
    server = server_of(stoker, agent)
    path = tmp_path / "app.conf"
    inputs = [{"name": "password", "secret": True}]
    content = {"path": str(path), "template": "password=${password}\nport=80\n"}
    id_ = stoker.create_config(content, group="file", inputs=inputs)
    log = stoker.create_config(f"#!/bin/sh\ncat {path}\n", inputs=inputs)
    present, following, last = "present-s3cret", "following-s3cret", "last-s3cret"

    def show(config_id, password, **body):
        _, target = run(stoker, server, config_id=config_id, input_values={"password": password}, **body)
        return json.dumps(target), target

    show(id_, present)
    assert present in path.read_text()
    shown, target = show(id_, following, mode="PREVIEW")
    assert "password=" in target["run"]["changes"][0]["diff"]
    texts = [
        shown,
        show(id_, following)[0],
        show(log, last)[0],
        stoker.heat("GET", "/software_deployments").raw.decode(),
    ]
    deployments = stoker.heat("GET", "/software_deployments").body["software_deployments"]
    texts += [stoker.heat("GET", f"/software_deployments/{each['id']}/logs").raw.decode() for each in deployments]
    texts += [file.read_bytes().decode(errors="replace") for file in stoker.folder.rglob("*.db*")]
    assert len(texts) > 6
    for text in texts:
        assert [secret for secret in (present, following, last) if secret in text] == []


def test_a_hook_without_preview_answers_unknown(stoker, agent, tmp_path):
    path = tmp_path / "made"
    id_ = stoker.create_config(f"#!/bin/sh\ntouch {path}\n")

    trigger, target = run(stoker, server_of(stoker, agent), config_id=id_, mode="PREVIEW")

    assert (trigger["status"], target["status"], target["changed"]) == ("COMPLETE", "COMPLETE", None)
    assert target["status_reason"].startswith("Cannot preview: the hook script does not support preview")
    assert not path.exists()


def test_an_agent_that_cannot_preview_gets_no_preview(stoker):
    old = spoken_agent(stoker)
    old.document(X_Stoker_Agent="0.0.1; hooks=file")
    id_ = stoker.create_config({"path": "/tmp/never", "content": ""}, group="file", name="motd")
    body = {"config_id": id_, "servers": [old.id], "mode": "PREVIEW"}
    refused = stoker.heat("POST", "/software_triggers", body)
    assert (refused.status, "cannot preview" in refused.raw.decode()) == (400, True)

    # the agent is replaced by an older one after the preview has begun
    def begin():
        old.document(X_Stoker_Agent="9.0; hooks=file; modes=preview")
        return stoker.heat("POST", "/software_triggers", body).status == 201

    stoker.until(begin)
    (entry,) = old.document(X_Stoker_Agent="9.0; hooks=file; modes=preview").body["deployments"]
    assert entry["mode"] == "preview"
    assert old.document(X_Stoker_Agent="0.0.1; hooks=file").body["deployments"] == []
    metadata = stoker.heat("GET", f"/software_deployments/metadata/{old.id}").body["metadata"]
    assert metadata == []
    deploy(stoker, old.id)
    assert [each.get("mode") for each in old.document(X_Stoker_Agent="0.0.1").body["deployments"]] == [None]


def test_an_update_is_previewed_on_its_servers(stoker, agent, tmp_path):
    server = server_of(stoker, agent)
    path = tmp_path / "app.conf"
    structured = {"type": "OS::Heat::StructuredDeployment"}
    ports = {"inputs": [{"name": "port"}], "outputs": [{"name": "size"}]}

    def template(port, **more):
        file = {"path": str(path), "template": f"port=${{port}} {port}\n"}
        config = define("OS::Heat::StructuredConfig", group="file", config=file, **ports)
        app = on(server, input_values={"port": port}, signal_transport="STOKER_SIGNAL") | structured
        return templates.template({"config": config, "app": app, **more})

    name = f"previewed-{os.urandom(3).hex()}"
    stack = stoker.create_stack(name, template(80))
    stoker.await_stack(stack)
    before = stoker.heat("GET", "/software_deployments").body["software_deployments"]
    dependent = {"next": on(server, input_values={"port": {"get_attr": ["app", "size"]}}) | structured}
    file = tmp_path / "next.json"
    file.write_text(json.dumps(template(82, **dependent)))
    words = ("stack", "update", name, "-t", str(file), "--dry-run", "--on-servers")
    shown = stoker.run(*words).stdout
    assert "app on an_update_is_previewed" in shown
    assert "would change 1 item" in shown
    assert "+port=82 82" in shown
    assert "next: unknown: input_values depends on app.size, unknown until applied" in shown
    previews = {each["resource_name"]: each for each in stoker.json(*words)["server_previews"]}
    assert "+port=82 82" in previews["app"]["targets"][0]["run"]["changes"][0]["diff"]
    assert previews["next"]["trigger_id"] is None
    assert path.read_text() == "port=80 80\n"
    # a new stack whose nested stack deploys to the server
    inner = tmp_path / "inner.yaml"
    inner.write_text(json.dumps(template(83)))
    file.write_text(json.dumps(templates.template({"web": {"type": "inner.yaml"}})))
    shown = stoker.run("stack", "create", f"{name}-2", "-t", str(file), "--dry-run", "--on-servers").stdout
    assert "+ app (OS::Heat::StructuredDeployment)" in shown
    assert "web/app on an_update_is_previewed" in shown
    assert "+port=83 83" in shown
    assert stoker.heat("GET", f"/stacks/{name}-2").status == 404
    assert "+port=99 80" in stoker.run("trigger", name, "app", "-i", "port=99", "--dry-run").stdout
    # the commands delete their triggers, with their deployments
    assert stoker.heat("GET", f"/software_triggers?stack={stack.rpartition('/')[2]}").body["software_triggers"] == []
    assert stoker.heat("GET", "/software_deployments").body["software_deployments"] == before
