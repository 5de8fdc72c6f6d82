"""Import of a stack of another Heat, whose answers were recorded: objects keep their ids, and nothing runs again."""

from __future__ import annotations

import json
import re
from collections import defaultdict
from copy import deepcopy
from pathlib import Path
from types import SimpleNamespace
from typing import Any
from uuid import uuid4

import pytest

from stoker_client.errors import BadInput, NotFound, Refused, TimedOut
from stoker_client.templates.documents import parse
from stoker_migrate.heat_import import handover
from stoker_migrate.heat_import.adoption_data import adoption_data, find_finished, find_import
from stoker_migrate.heat_import.handover import ServerConfig
from stoker_migrate.heat_import.source_stack import SourceStack, read_stack

_UUID = re.compile(r"[0-9a-f]{8}(?:-[0-9a-f]{4}){3}-[0-9a-f]{12}")
RECORDED = Path(__file__).parent / "data" / "imported_stack.json"


class RecordedWire:
    """A connection to a Heat whose answers were recorded, with ids of each import's own."""

    def __init__(self) -> None:
        new_ids: dict[str, str] = defaultdict(lambda: str(uuid4()))
        text = _UUID.sub(lambda match: new_ids[match[0]], RECORDED.read_text())
        self.answers: dict[str, Any] = json.loads(text)
        (stack,) = [answer["stack"] for answer in self.answers.values() if "stack" in answer]
        self.name = stack["stack_name"]
        template = parse(RECORDED.with_suffix(".yaml").read_text(), "the template of the recorded stack")
        self.answers[f"/stacks/{self.name}/{stack['id']}/template"] = template
        self.sent: list[tuple[str, str, Any]] = []

    def get(self, path: str) -> Any:
        if path not in self.answers:
            raise NotFound(path, 404)
        return deepcopy(self.answers[path])

    def send(self, method: str, path: str, body: Any = None) -> None:
        self.sent.append((method, path, body))

    def read(self) -> SourceStack:
        return read_stack(self, self.name)

    def deployment(self) -> dict[str, Any]:
        (answer,) = [answer for path, answer in self.answers.items() if path.startswith("/software_deployments/")]
        return answer["software_deployment"]


@pytest.fixture
def other() -> RecordedWire:
    return RecordedWire()


def imported(stoker, data: dict[str, Any]) -> tuple[str, dict[str, Any]]:
    """Import a stack, wait until it has adopted everything, and return its path and itself."""
    answer = stoker.heat("POST", "/stacks", {"stack_name": f"i{uuid4().hex[:8]}", "adopt_stack_data": data})
    assert answer.status == 201, answer.raw
    path = answer.headers["Location"].partition(f"/v1/{stoker.project}")[2]
    stoker.until(lambda: "PROGRESS" not in stoker.heat("GET", path).body["stack"]["stack_status"])
    return path, stoker.heat("GET", path).body["stack"]


def physical_ids(answer: dict[str, Any]) -> dict[str, str]:
    return {entry["resource_name"]: entry["physical_resource_id"] for entry in answer["resources"]}


def outputs(stack: dict[str, Any]) -> dict[str, Any]:
    return {output["output_key"]: output["output_value"] for output in stack["outputs"]}


def test_objects_keep_their_ids_and_outputs_their_values(stoker, other):
    source = other.read()
    path, stack = imported(stoker, adoption_data(source, {"secret": "s"}, {}))
    assert stack["stack_status"] == "ADOPT_COMPLETE", stack["stack_status_reason"]
    ids = {resource.name: resource.physical_id for resource in source.resources}
    now = physical_ids(stoker.heat("GET", f"{path}/resources").body)
    for name in ("server", "config", "deployment", "handle", "random"):
        assert now[name] == ids[name]
    then = outputs(source.stack)
    for name in ("said", "random", "signals"):
        assert outputs(stack)[name] == then[name]
    members = {member.name: member.physical_id for resource in source.resources for member in resource.members or ()}
    group = stoker.heat("GET", f"{path}/resources?nested_depth=1").body
    assert {name: id_ for name, id_ in physical_ids(group).items() if name in members} == members

    deployment = stoker.heat("GET", f"/software_deployments/{ids['deployment']}").body["software_deployment"]
    assert deployment["config_id"] == other.deployment()["config_id"]
    (entry,) = stoker.heat("GET", f"/software_deployments/metadata/{ids['server']}").body["metadata"]
    assert entry["id"] == deployment["config_id"]
    runs = stoker.heat("GET", f"/software_deployments/{ids['deployment']}/runs").body["runs"]
    assert [run["state"] for run in runs] == ["DONE"]

    body = {"template": source.template, "parameters": {"secret": "s", "word": "changed"}}
    assert stoker.heat("PUT", path, body).status == 202
    stoker.until(lambda: len(stoker.heat("GET", f"/software_deployments/{ids['deployment']}/runs").body["runs"]) == 2)
    assert stoker.heat("DELETE", path).status == 204


def test_an_import_can_be_repeated_after_the_deletion_of_an_incomplete_one(stoker, other):
    data = adoption_data(other.read(), {"secret": "s"}, {})
    kind = "OS::Heat::DeployedServer"
    first = {"type": kind, "depends_on": list(data["template"]["resources"])}
    template = {**data["template"], "resources": {**data["template"]["resources"], "lost": first}}
    lost = {"type": kind, "resource_id": str(uuid4())}
    path, stack = imported(stoker, {**data, "template": template, "resources": {**data["resources"], "lost": lost}})
    assert stack["stack_status"] == "ADOPT_FAILED"
    assert stoker.heat("DELETE", path).status == 204
    stoker.until(lambda: stoker.heat("GET", path).body["stack"]["stack_status"] == "DELETE_COMPLETE")

    used = f"/software_deployments/{data['software_deployments'][0]['id']}"
    assert stoker.heat("PUT", used, {"status": "IN_PROGRESS"}).status == 200
    answer = stoker.heat("POST", "/stacks", {"stack_name": "used", "adopt_stack_data": data})
    assert (answer.status, "exists already" in answer.raw.decode()) == (409, True)
    assert stoker.heat("DELETE", used).status == 204

    path, stack = imported(stoker, data)
    assert stack["stack_status"] == "ADOPT_COMPLETE", stack["stack_status_reason"]
    assert stoker.heat("DELETE", path).status == 204


def test_values_of_hidden_parameters_are_required(other):
    with pytest.raises(BadInput, match=r"Heat does not show hidden parameters of \w+: add -P secret=…"):
        adoption_data(other.read(), {}, {})


def test_only_complete_stacks_and_ended_deployments_are_read(other):
    other.answers[f"/stacks/{other.name}"]["stack"]["stack_status"] = "UPDATE_IN_PROGRESS"
    other.deployment()["status"] = "IN_PROGRESS"
    with pytest.raises(BadInput) as caught:  # all reasons together
        adoption_data(other.read(), {}, {}, ["no abandonment"])
    lines = str(caught.value).splitlines()
    assert "is UPDATE_IN_PROGRESS there: only a complete stack" in lines[1]
    assert "is IN_PROGRESS there: wait until it ends" in lines[2]
    assert lines[3] == "no abandonment"
    assert "-P secret=…" in lines[4]


def test_agents_are_pointed_at_stoker_through_their_metadata(other):
    config = {"collectors": ["heat", "local"], "heat": {"auth_url": "https://stoker", "password": None}}
    source = other.read()
    (nested,) = [resource.nested for resource in source.resources if resource.name == "group"]
    template = {"heat_template_version": "2018-08-31", "resources": {"0": {"type": "t", "metadata": {"a": 1}}}}
    complete = {"stack": {"stack_name": "n", "stack_status": "UPDATE_COMPLETE"}}
    other.answers |= {
        f"{nested}/template": template,
        f"{nested}/files": {},
        nested: complete,
        f"{nested}/resources/0/metadata": {"metadata": {}},
        f"{nested}/resources/1/metadata": {"metadata": {"os-collect-config": config}},
        f"{source.path}/resources/server/metadata": {"metadata": {}},
        source.path: complete,
    }
    paths = ("server", "group/0", "group/1")
    configs = [ServerConfig(path, f"s{number}", config) for number, path in enumerate(paths)]
    handover.repoint(other, source, configs)
    first, second = other.sent
    assert (first[:2], second[:2]) == (("PATCH", source.path), ("PATCH", nested))
    assert first[2]["template"]["resources"]["server"]["metadata"] == {"os-collect-config": config}
    assert second[2]["template"]["resources"] == {"0": {"type": "t", "metadata": {"a": 1, "os-collect-config": config}}}
    assert configs[1].ini() == "[DEFAULT]\ncollectors=heat,local\n\n[heat]\nauth_url=https://stoker\n"

    for status in ("UPDATE_FAILED", "ROLLBACK_COMPLETE"):
        failed = {**complete["stack"], "stack_status": status, "stack_status_reason": "no"}
        other.answers[nested] = {"stack": failed}
        with pytest.raises(BadInput, match="the update of the stack n at the other Heat failed: no"):
            handover.repoint(other, source, configs)


def test_a_source_is_abandoned_only_if_it_has_not_changed(other):
    source = other.read()
    gone = {"stack": {**source.stack, "stack_status": "DELETE_COMPLETE"}}
    other.answers[source.path] = gone
    other.answers[f"/stacks/{source.stack['id']}"] = {"stack": dict(source.stack)}
    handover.abandon(other, source)
    assert other.sent == [("DELETE", f"{source.path}/abandon", None)]
    listed = other.answers[f"{source.path}/resources"]["resources"]
    listed[0]["physical_resource_id"] = str(uuid4())
    with pytest.raises(BadInput, match="has changed at the other Heat since its import: it was not abandoned"):
        handover.abandon(other, source)
    assert len(other.sent) == 1
    other.answers[f"/stacks/{source.stack['id']}"] = gone
    with pytest.raises(NotFound, match="is deleted there"):
        read_stack(other, source.stack["id"])


@pytest.mark.parametrize(
    ("answer", "refusals"),
    [
        (NotFound("no stack", 404), []),
        (
            Refused("Stack Abandon is not supported.", 400),
            [
                "the other Heat does not abandon stacks (Stack Abandon is not supported.): set enable_stack_abandon ="
                " true in its heat.conf, or omit --abandon"
            ],
        ),
    ],
)
def test_a_heat_that_abandons_no_stacks_is_recognized(other, monkeypatch, answer, refusals):
    def send(method: str, path: str) -> None:
        assert (method, path.startswith("/stacks/none/")) == ("DELETE", True)
        raise answer

    monkeypatch.setattr(other, "send", send)
    assert handover.find_refusals(other) == refusals


def test_agents_have_to_change_before_the_source_is_abandoned(other):
    source = other.read()
    seen: dict[str, Any] = {"last_seen": None}
    client: Any = SimpleNamespace(servers=SimpleNamespace(show=lambda _id: seen))
    with pytest.raises(
        TimedOut, match=f"have not changed to Stoker within 0.01 seconds: {other.deployment()['server_id']}"
    ):
        handover.await_agents(client, source, 0.01)
    handover.await_agents(client, source, 0)
    seen["last_seen"] = "2026-01-01T00:00:00Z"
    handover.await_agents(client, source, 0.01)


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"software_configs": "x"}, "software_configs must be a list, not a string"),
        ({"software_configs": [{"id": "x"}]}, "software_configs[0] is not valid: its id must be a UUID"),
        ({"servers": [{"id": str(uuid4())}]}, "servers[0].name is required"),
        (
            {
                "software_deployments": [
                    {"id": str(uuid4()), "status": "IN_PROGRESS", "config_id": "c", "server_id": "s"}
                ]
            },
            "is none of COMPLETE, FAILED",
        ),
        (
            {"software_deployments": [{"id": str(uuid4()), "status": "COMPLETE"}]},
            "software_deployments[0].config_id is required",
        ),
        (
            {
                "software_deployments": [
                    {"id": str(uuid4()), "status": "COMPLETE", "config_id": str(uuid4()), "server_id": str(uuid4())}
                ]
            },
            "is missing",
        ),
        ({"resources": {"a": {"metadata": "x"}}}, "resources.a.metadata must be a map"),
    ],
)
def test_malformed_data_is_refused(stoker, change, message):
    data = {"template": {"heat_template_version": "2018-08-31"}, "resources": {}, **change}
    answer = stoker.heat("POST", "/stacks", {"stack_name": "bad", "adopt_stack_data": data})
    assert (answer.status, message in answer.body["error"]["message"]) == (400, True)
    assert stoker.heat("GET", "/stacks/bad").status == 404


def test_existing_ids_are_refused(stoker, other):
    data = adoption_data(other.read(), {"secret": "s"}, {})
    path, _ = imported(stoker, data)
    for section in ("servers", "software_configs", "software_deployments"):
        again = {**data, "servers": [], "software_configs": [], "software_deployments": [], section: data[section]}
        answer = stoker.heat("POST", "/stacks", {"stack_name": "again", "adopt_stack_data": again})
        assert (answer.status, "exists already" in answer.raw.decode()) == (409, True)
    assert stoker.heat("DELETE", path).status == 204


def test_an_interrupted_import_is_recognized_by_its_objects(other):
    source = other.read()
    shown = {"stack_name": other.name, "id": source.stack["id"], "stack_status": "ADOPT_IN_PROGRESS"}
    client: Any = SimpleNamespace(stacks=SimpleNamespace(show=lambda _name, **_more: shown), wire=other)
    assert find_import(client, "a", source) == f"{other.name}/{source.stack['id']}"
    (server,) = [
        entry for entry in other.answers[f"{source.path}/resources"]["resources"] if entry["resource_name"] == "server"
    ]
    server["physical_resource_id"] = str(uuid4())
    assert find_import(client, "a", source) is None
    assert find_finished(client, "a") is None
    shown["stack_status"] = "ADOPT_COMPLETE"
    assert find_finished(client, "a") == shown
