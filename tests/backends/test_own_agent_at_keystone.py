"""Our agent with users at a real Keystone, which Stoker made for it: it looks and reports with their logins."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest

from support.agents import own_agent
from support.keystone import Keystone, flags
from support.server import Served, served
from support.templates import config, deployment, server, template

SCRIPT = '#!/bin/sh\necho "$who" >>"$WORK/runs"\nprintf "$who" >"$heat_outputs_path.said"\n'


@pytest.fixture(scope="module")
def keystone(tmp_path_factory, start_keystone) -> Iterator[Keystone]:
    with start_keystone(tmp_path_factory.mktemp("keystone")) as running:
        yield running


@pytest.fixture(scope="module")
def stoker(keystone, tmp_path_factory) -> Iterator[Served]:
    folder = tmp_path_factory.mktemp("stoker")
    with served(folder, *flags(keystone, folder)) as running:
        keystone.add_service("orchestration", f"{running.url}/v1/%(tenant_id)s")
        keystone.add_service("messaging", f"{running.url}/messaging")
        yield running


@pytest.fixture(scope="module")
def project(keystone) -> str:
    made = keystone.add_project("people")
    keystone.add_user("a-member", "secret", made, "member")
    return made


@pytest.mark.parametrize("metadata", ["POLL_SERVER_HEAT", "ZAQAR_MESSAGE"])
def test_stokers_agent_logs_in_at_keystone(stoker, keystone, project, tmp_path, metadata):
    machine = server(f"machine-{metadata.lower()}")
    machine["properties"]["software_config_transport"] = metadata
    names = {"one": "HEAT_SIGNAL", "two": "ZAQAR_SIGNAL", "three": "CFN_SIGNAL"}
    resources: dict[str, Any] = {"server": machine, "config": config(SCRIPT, inputs=("who",), outputs=("said",))}
    for name, way in names.items():
        resources[name] = deployment(signal_transport=way, input_values={"who": name})
    said = template(resources, outputs={name: {"value": {"get_attr": [name, "said"]}} for name in names})
    login = keystone.session(("a-member", "secret"), "people")
    headers = {"X-Auth-Token": str(login.get_token())}
    name = f"own-{metadata.lower().replace('_', '-')}"
    made = stoker.request("POST", f"/v1/{project}/stacks", {"stack_name": name, "template": said}, headers)
    assert made.status == 201, made.raw
    path = f"/v1/{project}/stacks/{name}/{made.body['stack']['id']}"

    def asked(rest: str = "") -> Any:
        return stoker.request("GET", path + rest, headers=headers).body

    stoker.until(lambda: asked("/resources/one")["resource"]["physical_resource_id"], 60)
    known = asked("/resources/server/metadata")["metadata"]["os-collect-config"]
    sections = {each: known[each] for each in known["collectors"] if each != "local"}
    assert [section["auth_url"] for section in sections.values()] == [keystone.url]
    with own_agent(tmp_path, sections) as agent:
        agent.start()
        stoker.until(lambda: asked()["stack"]["stack_status"] != "CREATE_IN_PROGRESS", 60)
        shown = asked()["stack"]
        assert shown["stack_status"] == "CREATE_COMPLETE", agent.log[-3000:]
    assert {each["output_key"]: each["output_value"] for each in shown["outputs"]} == {name: name for name in names}
    assert sorted(agent.lines()) == sorted(names)
