"""Where documents and results go is said by settings; a site may do without."""

from __future__ import annotations

import socket

import pytest

from stoker import settings
from stoker.model.errors import Invalid
from support.backends import greeting
from support.ports import free_port
from support.server import served
from support.templates import HANDLE, template, wait

ACCOUNT = "http://swift.example.org/v1/AUTH_p"


@pytest.mark.parametrize(
    "said,word",
    [
        ({"object_store": "elsewhere"}, "object_store"),
        ({"object_store": "http://swift.example.org"}, "AUTH_"),
        ({"object_store": ACCOUNT}, "object_store_cloud"),
        ({"object_store": f"{ACCOUNT}/container", "object_store_cloud": "c"}, "object_store"),
        ({"object_store": f"{ACCOUNT}?x=1", "object_store_cloud": "c"}, "object_store"),
        ({"object_store": ""}, "object_store"),
        ({"messaging": "no"}, "messaging"),
        ({"messaging": ""}, "messaging"),
        ({"messaging": "ftp://zaqar"}, "messaging"),
    ],
)
def test_invalid_backend_settings_are_refused(said, word):
    with pytest.raises(Invalid, match=word):
        settings.load({}, {f"STOKER_{name.upper()}": value for name, value in said.items()}, None)


def test_the_url_of_an_account_may_have_a_path():
    found = settings.load({"object_store": "https://h/swift/v1/AUTH_p/", "object_store_cloud": "c"}, {}, None)
    assert found.object_store == "https://h/swift/v1/AUTH_p"
    assert not found.embeds_objects
    assert found.embeds_queues


def catalog(stoker):
    found = stoker.request("GET", "/identity/v3/auth/catalog", headers={"X-Auth-Token": stoker.token}).body["catalog"]
    return {each["type"]: each["endpoints"][0]["url"] for each in found}


def test_a_site_without_the_service_refuses_its_transports(tmp_path, database_url):
    with served(tmp_path, "--object-store", "off", "--messaging", "off", database=database_url) as stoker:
        assert not {"object-store", "messaging"} & set(catalog(stoker))
        headers = {"X-Auth-Token": stoker.token, "Client-ID": "3381af92-2b9e-11e3-b191-71861300734c"}
        for path in (f"/object-store/v1/AUTH_{stoker.project}", "/object-store/info", "/messaging/v2/queues"):
            assert stoker.request("GET", path, headers=headers).status == 404
        for metadata, signal, word in (
            ("POLL_TEMP_URL", "CFN_SIGNAL", "POLL_TEMP_URL"),
            ("ZAQAR_MESSAGE", "CFN_SIGNAL", "ZAQAR_MESSAGE"),
            ("POLL_SERVER_CFN", "TEMP_URL_SIGNAL", "TEMP_URL_SIGNAL"),
            ("POLL_SERVER_CFN", "ZAQAR_SIGNAL", "ZAQAR_SIGNAL"),
        ):
            asked = {"stack_name": "s", "template": greeting(metadata, signal)}
            refused = stoker.heat("POST", "/stacks", asked)
            assert refused.status == 400
            assert word in refused.body["error"]["message"]
            assert stoker.heat("GET", "/stacks").body["stacks"] == []
        stoker.create_stack("s", greeting("POLL_SERVER_CFN", "CFN_SIGNAL"))


def test_resources_of_a_disabled_service_can_be_updated_and_deleted(tmp_path, database_url):
    with served(tmp_path, database=database_url) as stoker:
        stacks = [
            stoker.create_stack("o", greeting("POLL_TEMP_URL", "TEMP_URL_SIGNAL")),
            stoker.create_stack("q", greeting("ZAQAR_MESSAGE", "ZAQAR_SIGNAL")),
        ]
        assert stoker.stop() == 0
        stoker.flags = (*stoker.flags, "--object-store", "off", "--messaging", "off")
        stoker.restart()
        for stack in stacks:
            assert "agent" in stoker.outputs(stack)
            assert stoker.heat("PUT", stack, {"template": greeting("POLL_SERVER_CFN", "CFN_SIGNAL")}).status == 202
            assert stoker.heat("DELETE", stack).status == 204
            stoker.await_stack(stack, "DELETE_COMPLETE")


def test_the_catalog_lists_external_services(tmp_path, database_url):
    port = free_port()
    account, queues = f"http://127.0.0.1:{port}/v1/AUTH_p", f"http://127.0.0.1:{port}"
    flags = ("--object-store", account, "--object-store-cloud", "swift", "--messaging", queues)
    with served(tmp_path, *flags, database=database_url) as stoker:
        found = catalog(stoker)
        assert (found["object-store"], found["messaging"]) == (account, queues)
        headers = {"X-Auth-Token": stoker.token}
        assert stoker.request("GET", "/messaging/v2/queues", headers=headers).status == 404
        assert stoker.request("GET", f"/object-store/v1/AUTH_{stoker.project}", headers=headers).status == 404


def test_a_backend_that_hangs_does_not_delay_requests(tmp_path, database_url):
    """It takes connections and says nothing: requests, and the deadlines of others, must not feel it."""
    with socket.create_server(("127.0.0.1", 0), backlog=100) as mute:
        url = f"http://127.0.0.1:{mute.getsockname()[1]}"
        with served(tmp_path, "--messaging", url, database=database_url) as stoker:
            for n in range(10):
                stoker.create_stack(f"s{n}", greeting("ZAQAR_MESSAGE", "ZAQAR_SIGNAL", count=5))
            stack = stoker.create_stack("deadline", template({"handle": HANDLE, "w": wait(timeout=1)}))
            stoker.until(lambda: stoker.stack(stack)["stack_status"] == "CREATE_FAILED")
