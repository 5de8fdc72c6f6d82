"""A Zaqar that asks Stoker's identity who calls, and logins by an entry of clouds.yaml."""

from __future__ import annotations

import json
from collections.abc import Iterator

import pytest

from support.backends import RESULT, QueueAgent, ask, greeting, popped, reporter
from support.clouds import write_clouds
from support.ports import free_port
from support.server import Served, served


@pytest.fixture
def guarded(tmp_path, database_url, start_zaqar) -> Iterator[tuple[Served, str]]:
    """A Stoker and the URL of a Zaqar that believes Stoker's tokens and nothing else; Stoker knows that URL."""
    zaqar = free_port()
    with served(tmp_path, "--messaging", f"http://127.0.0.1:{zaqar}", database=database_url) as stoker:
        identity = (
            "[keystone_authtoken]\nauth_type = password\n"
            f"auth_url = {stoker.url}/identity\nwww_authenticate_uri = {stoker.url}/identity\n"
            f"username = admin\npassword = {stoker.environment['OS_PASSWORD']}\nproject_name = default\n"
            "user_domain_id = default\nproject_domain_id = default\n"
        )
        with start_zaqar(tmp_path / "zaqar", identity=identity, port=zaqar) as running:
            yield stoker, running.url


def through(stoker, name):
    """A deployment out and back."""
    stack = stoker.create_stack(name, greeting("ZAQAR_MESSAGE", "ZAQAR_SIGNAL"))
    agent = QueueAgent(stoker.outputs(stack)["agent"]["zaqar"])
    (run,) = popped(stoker, agent, "world")
    assert reporter(run).post(run["deploy_queue_id"], json.dumps({**RESULT, "said": name})) == 201
    stoker.until(lambda: stoker.stack(stack)["stack_status"] == "CREATE_COMPLETE", 60)
    assert stoker.outputs(stack)["d0"] == name
    return stack, run["deploy_queue_id"]


def names(stoker, url):
    headers = {"X-Auth-Token": stoker.token, "Client-ID": "3381af92-2b9e-11e3-b191-71861300734c"}
    return {each["name"] for each in ask("GET", f"{url}/v2/queues", headers=headers).body["queues"]}


def test_the_backends_accept_tokens_of_stoker_and_of_an_entry_of_clouds_yaml(guarded):
    stoker, url = guarded
    assert ask("GET", f"{url}/v2/queues", headers={"X-Project-Id": stoker.project}).status == 401
    stack, queue = through(stoker, "ours")
    assert queue in names(stoker, url)
    assert stoker.heat("DELETE", stack).status == 204
    stoker.until(lambda: not names(stoker, url))
    assert stoker.stop() == 0
    said = stoker.environment
    auth = {
        "auth_url": f"{stoker.url}/identity/v3",
        "username": said["OS_USERNAME"],
        "password": said["OS_PASSWORD"],
        "project_name": said["OS_PROJECT_NAME"],
        "user_domain_name": "Default",
        "project_domain_name": "Default",
    }
    write_clouds(stoker.folder, {"here": {"auth": auth}})
    stoker.flags = (*stoker.flags, "--messaging-cloud", "here")
    stoker.restart()
    stack, _ = through(stoker, "cloud")
    assert stoker.heat("DELETE", stack).status == 204
    stoker.until(lambda: not names(stoker, url))


def test_an_unreachable_cloud_is_reported_and_stops_nothing_else(tmp_path, database_url):
    with served(
        tmp_path, "--messaging", "http://127.0.0.1:9", "--messaging-cloud", "nowhere", database=database_url
    ) as stoker:
        stoker.create_stack("waits", greeting("ZAQAR_MESSAGE", "ZAQAR_SIGNAL"))
        stoker.until(lambda: "nowhere" in stoker.output)
        assert "Traceback" not in stoker.output
