"""What a machine says of itself gives it nothing that belongs to another machine."""

from __future__ import annotations

import os

import pytest

pytestmark = pytest.mark.slow


def redeem(stoker, token, instance, hostname, **more):
    body = {"token": token, "instance": instance, "machine": "m", "hostname": hostname, **more}
    answer = stoker.request("POST", "/agent/v1/enroll", body)
    assert answer.status == 201, answer.raw
    return answer.body


def poll(stoker, key):
    return stoker.request("GET", "/agent/v1/document?wait=0", None, {"Authorization": f"Bearer {key}"}).status


def create(stoker, name, server_name):
    """Create a stack with a server of this name. Return its status and reason once it has ended."""
    resources = {"server": {"type": "OS::Heat::DeployedServer", "properties": {"name": server_name}}}
    template = {"heat_template_version": "2018-08-31", "resources": resources}
    made = stoker.heat("POST", "/stacks", {"stack_name": name, "template": template})
    assert made.status == 201, made.raw
    path = f"/stacks/{name}/{made.body['stack']['id']}"
    stoker.until(lambda: not stoker.heat("GET", path).body["stack"]["stack_status"].endswith("IN_PROGRESS"))
    stack = stoker.heat("GET", path).body["stack"]
    return stack["stack_status"], stack["stack_status_reason"]


def test_a_known_machine_id_passes_on_no_server(stoker):
    token = stoker.heat("POST", "/enrollments", {"limit": 5}).body["enrollment"]["token"]
    first = redeem(stoker, token, "a", "web")
    other = redeem(stoker, token, "b", "web")
    assert other["server_id"] != first["server_id"]
    assert (poll(stoker, first["key"]), poll(stoker, other["key"])) == (200, 200)
    again = redeem(stoker, token, "c", "web", key=first["key"])
    assert again["server_id"] == first["server_id"]
    assert (poll(stoker, first["key"]), poll(stoker, again["key"])) == (401, 200)


def test_a_name_that_a_machine_chose_binds_no_stack(stoker):
    name = f"vault-{os.urandom(3).hex()}"
    token = stoker.heat("POST", "/enrollments", {"limit": 5}).body["enrollment"]["token"]
    machine = redeem(stoker, token, os.urandom(8).hex(), name, machine=name)
    assert machine["name"] == name
    status, reason = create(stoker, f"{name}-1", name)
    assert status == "CREATE_FAILED"
    assert f"stoker server approve {name}" in reason
    assert stoker.heat("POST", f"/servers/{machine['server_id']}/approve").status == 409, "an id confirms no name"
    assert stoker.heat("POST", f"/servers/{name}/approve").body["server"]["self_named"] is False
    assert create(stoker, f"{name}-2", name)[0] == "CREATE_COMPLETE"
