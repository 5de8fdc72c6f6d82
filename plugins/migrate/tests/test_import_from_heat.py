"""
``stoker import heat`` against a real Heat: ids and outputs stay, agents change to Stoker and repeat nothing.

``STOKER_TEST_HEAT_CLOUD`` names the Heat's entry of clouds.yaml (``OS_CLIENT_CONFIG_FILE``). Heat needs services that
the tests do not install: a database server and RabbitMQ.
"""

from __future__ import annotations

import os
import time
from collections.abc import Collection, Iterator
from pathlib import Path
from typing import Any
from uuid import uuid4

import pytest

from stoker_client.errors import NotFound
from stoker_client.login import open_wire
from stoker_client.wire import Wire
from support.agents import own_agent
from support.server import Served, served

pytestmark = pytest.mark.slow

CLOUD = os.environ.get("STOKER_TEST_HEAT_CLOUD", "")
TEMPLATE = Path(__file__).parent / "data" / "imported_stack.yaml"
CLOUD_TEMPLATE = Path(__file__).parent / "data" / "imported_cloud" / "stack.yaml"
#: Lists of a cloud: the service, the path and the key.
LISTS = (
    ("compute", "/servers/detail", "servers"),
    ("compute", "/os-keypairs", "keypairs"),
    ("network", "/networks", "networks"),
    ("network", "/subnets", "subnets"),
    ("network", "/ports", "ports"),
    ("network", "/routers", "routers"),
    ("network", "/security-groups", "security_groups"),
    ("network", "/floatingips", "floatingips"),
    ("block-storage", "/volumes/detail", "volumes"),
)


@pytest.fixture
def other(monkeypatch, tmp_path) -> Iterator[Wire]:
    """The real Heat."""
    if not CLOUD:
        pytest.skip("STOKER_TEST_HEAT_CLOUD names no real Heat in clouds.yaml")
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    wire = open_wire(CLOUD)
    yield wire
    wire.close()


@pytest.fixture
def stack(other) -> Iterator[dict[str, Any]]:
    """A stack of the real Heat whose deployment waits for its agent."""
    name = f"import-{uuid4().hex[:8]}"
    template = TEMPLATE.read_text()
    body = {"stack_name": name, "template": template, "parameters": {"secret": "s3cr3t"}, "timeout_mins": 10}
    stack = other.send("POST", "/stacks", body)["stack"]
    yield {"stack_name": name, "id": stack["id"]}
    other.send("DELETE", f"/stacks/{name}/{stack['id']}")


def await_it(true, seconds: float = 240) -> Any:
    limit = time.monotonic() + seconds
    while not (value := true()):
        assert time.monotonic() < limit
        time.sleep(0.2)
    return value


def resources(wire: Any, path: str) -> dict[str, str]:
    return {entry["resource_name"]: entry["physical_resource_id"] for entry in wire(f"{path}/resources")["resources"]}


def outputs(stack: dict[str, Any]) -> dict[str, Any]:
    return {output["output_key"]: output["output_value"] for output in stack["outputs"]}


def test_a_stack_of_a_real_heat_is_taken_over_with_its_agent(other, stack, tmp_path, database_url):
    path = f"/stacks/{stack['stack_name']}/{stack['id']}"
    metadata = f"{path}/resources/server/metadata"
    section = await_it(lambda: _section(other, metadata))
    with own_agent(tmp_path / "agent", {"heat": section["heat"]}) as agent:
        agent.start()
        await_it(lambda: resources(other.get, path).get("handle"))
        other.send("POST", f"{path}/resources/handle/signal", {"status": "SUCCESS", "id": "1", "data": "d"})
        await_it(lambda: other.get(path)["stack"]["stack_status"] == "CREATE_COMPLETE")
        before = other.get(path)["stack"]
        ids = resources(other.get, path)
        with served(tmp_path, database=database_url) as stoker:
            stoker.environment["OS_CLIENT_CONFIG_FILE"] = os.environ.get("OS_CLIENT_CONFIG_FILE", "")
            words = ("import", "heat", stack["stack_name"], "--os-cloud", CLOUD)
            refused = stoker.run(*words, check=False)
            assert "add -P secret=…" in refused.stderr
            shown = stoker.run(*words, "-P", "secret=s3cr3t", "--repoint")
            assert "still use the other Heat" not in shown.stderr
            _check_taken_over(stoker, stack["stack_name"], before, ids)
            kept = ("server", "config", "deployment")
            assert {name: resources(other.get, path)[name] for name in kept} == {name: ids[name] for name in kept}
            stoker.until(lambda: stoker.url in str(agent.kept), 120)
            template = str(TEMPLATE)
            stoker.run("stack", "update", stack["stack_name"], "-t", template, "-P", "word=changed", "--wait")
            assert outputs(stoker.json("stack", "show", stack["stack_name"]))["said"].strip() == "changed"
        assert agent.lines() == ["hello", "changed"]


def _status(wire: Wire, path: str) -> str | None:
    """Return the status of a resource; None before Heat has stored it."""
    try:
        return wire.get(path)["resource"]["resource_status"]
    except NotFound:
        return None


def _section(wire: Wire, path: str) -> dict[str, Any] | None:
    """Return the agent's configuration, once Heat has created the server."""
    try:
        section = wire.get(path)["metadata"].get("os-collect-config")
    except NotFound:
        return None
    return section if section and section.get("heat") else None


def _check_taken_over(stoker: Served, name: str, before: dict[str, Any], ids: dict[str, str]) -> None:
    found = stoker.json("stack", "show", name)
    path = f"/stacks/{name}/{found['id']}"
    assert found["stack_status"] == "ADOPT_COMPLETE"
    now = resources(lambda path: stoker.heat("GET", path).body, path)
    assert {key: now[key] for key in ("server", "config", "deployment", "handle")} == {
        key: ids[key] for key in ("server", "config", "deployment", "handle")
    }
    then = outputs(before)
    assert {key: outputs(found)[key] for key in ("said", "random", "signals")} == {
        key: then[key] for key in ("said", "random", "signals")
    }
    deployment = stoker.heat("GET", f"/software_deployments/{ids['deployment']}").body["software_deployment"]
    assert (deployment["status"], deployment["server_id"]) == ("COMPLETE", ids["server"])


@pytest.fixture
def cloud_stack(other) -> Iterator[dict[str, Any]]:
    """A stack of the real Heat with servers, networks and volumes, whose deployment was signalled."""
    if "nova" not in str(other.get("/resource_types")).lower():
        pytest.skip("the real Heat has no Nova")
    name = f"import-{uuid4().hex[:8]}"
    files = {"member.yaml": CLOUD_TEMPLATE.with_name("member.yaml").read_text()}
    body = {"stack_name": name, "template": CLOUD_TEMPLATE.read_text(), "files": files, "timeout_mins": 10}
    path = f"/stacks/{name}/{other.send('POST', '/stacks', body)['stack']['id']}"
    deployment = f"{path}/resources/deployment"
    await_it(lambda: _status(other, deployment) == "CREATE_IN_PROGRESS")
    await_it(lambda: other.get(deployment)["resource"]["physical_resource_id"])
    other.send("POST", f"{deployment}/signal", {"answer": "fortytwo", "deploy_status_code": 0})
    await_it(lambda: "PROGRESS" not in other.get(path)["stack"]["stack_status"])
    stack = other.get(path)["stack"]
    assert stack["stack_status"] == "CREATE_COMPLETE", stack["stack_status_reason"]
    yield stack
    if _exists(other, path):
        other.send("DELETE", path)


def _exists(wire: Wire, path: str) -> bool:
    try:
        return wire.get(path)["stack"]["stack_status"] != "DELETE_COMPLETE"
    except NotFound:
        return False


def _objects(ids: Collection[str]) -> dict[str, Any]:
    """Return the objects of the cloud with these ids, with what changes at each write."""
    import openstack

    connection = openstack.connect(cloud=CLOUD)
    members = ("name", "updated", "updated_at", "revision_number", "metadata", "description", "device_id")
    objects = {}
    for service, path, key in LISTS:
        for item in getattr(connection, service.replace("-", "_")).get(path).json()[key]:
            item = item.get("keypair", item)
            id_ = item.get("id") or item["name"]
            if id_ in ids:
                objects[f"{key}/{id_}"] = {name: item.get(name) for name in members}
    return objects


@pytest.mark.timeout(900)
@pytest.mark.filterwarnings("ignore:Support for InfluxDB", "ignore:The 'service_type' parameter")
def test_servers_networks_and_volumes_are_taken_over_untouched(other, cloud_stack, tmp_path, database_url):
    name, path = cloud_stack["stack_name"], f"/stacks/{cloud_stack['stack_name']}/{cloud_stack['id']}"
    listed = other.get(f"{path}/resources?nested_depth=5")["resources"]
    ids = {entry["physical_resource_id"] for entry in listed}
    before, then = _objects(ids), outputs(cloud_stack)
    assert len(before) > 10
    clouds = tmp_path / "home" / ".config" / "openstack" / "clouds.yaml"
    clouds.parent.mkdir(parents=True)
    clouds.write_text(Path(os.environ["OS_CLIENT_CONFIG_FILE"]).read_text())
    words = ("import", "heat", name, "--os-cloud", CLOUD, "--agent-timeout", "0")
    with served(tmp_path, "--cloud", CLOUD, database=database_url) as stoker:
        stoker.environment["OS_CLIENT_CONFIG_FILE"] = os.environ["OS_CLIENT_CONFIG_FILE"]
        stoker.run(*words)
        found = outputs(stoker.json("stack", "show", name))
        assert {key: found[key] for key in then if then[key] is not None} == {
            key: value for key, value in then.items() if value is not None
        }
        stoker.run("stack", "update", name, "-t", str(CLOUD_TEMPLATE), "--wait")
        again = stoker.run(*words, "--name", f"{name}-2", check=False)
        assert "because other stacks have its objects: " in again.stderr
        stoker.run(*words, "--repoint")
        for server in ("server", "members/0/server"):
            metadata = other.get(_nested(other, path, server))["metadata"]
            assert stoker.url in str(metadata["os-collect-config"])
        stoker.run(*words, "--abandon")
        assert not _exists(other, path)
        assert _objects(ids) == before
        stoker.run("stack", "delete", name, "--yes", "--wait")
    assert _objects(ids) == {}


def _nested(wire: Wire, path: str, resource: str) -> str:
    """Return the path of the metadata of a resource in nested stacks."""
    *outer, name = resource.split("/")
    for step in outer:
        links = wire.get(f"{path}/resources/{step}")["resource"]["links"]
        (href,) = [link["href"] for link in links if link["rel"] == "nested"]
        path = f"/stacks/{href.partition('/stacks/')[2]}"
    return f"{path}/resources/{name}/metadata"
