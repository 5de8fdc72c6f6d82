"""A server's document goes with the server, whoever publishes it at that moment."""

from __future__ import annotations

import threading
from concurrent.futures import ThreadPoolExecutor
from datetime import UTC, datetime

import pytest

from stoker.backends.logins import open_session
from stoker.backends.remote_object_controller import ExternalObjects, RemoteObjects
from stoker.backends.swift import SwiftDriver
from stoker.service_client import ServiceClient
from stoker.stacks import operations
from stoker.types.server_base import PUBLISH
from support import query
from support.blocking import until_blocked
from support.stacks import world
from support.templates import define, template

URL = "http://swift.test/v1/AUTH_p"
SERVER = define("OS::Heat::DeployedServer", name="machine", software_config_transport="POLL_TEMP_URL")


@pytest.fixture
def here(store):
    hand = SwiftDriver(URL, ServiceClient(URL, open_session), b"secret", lambda: datetime.now(UTC))
    return world(store, objects=lambda work: ExternalObjects(RemoteObjects(work), hand, hand))


def published(here, stack):
    """The job that publishes the document of the stack's server."""
    resource = here.resources(stack)["server"]
    args = {"server_id": resource.physical_id or resource.id, "resource_id": resource.id, "again": True}
    return lambda: here.work.handlers[PUBLISH](args)


def wanted(here):
    with here.store.read() as tx:
        return query.column(tx, "SELECT name FROM remote_objects WHERE NOT is_removed")


def test_a_document_published_while_its_server_is_deleted_is_not_recreated(here):
    stack = here.create(template({"server": SERVER}))
    publish = published(here, stack)
    publish()
    assert len(wanted(here)) == 1
    deleted, publishing = threading.Event(), threading.Event()

    def delete(tx):
        operations.delete(tx, here.engine, stack.id)
        deleted.set()
        until_blocked(here.store, publishing.is_set)

    def publish_meanwhile():
        deleted.wait(60)
        publish()
        publishing.set()

    with ThreadPoolExecutor(2) as pool:
        for done in [pool.submit(here.store.write, delete), pool.submit(publish_meanwhile)]:
            done.result(20)
    assert wanted(here) == []


def test_a_document_is_not_recreated_while_its_deleted_server_waits_at_a_breakpoint(here):
    hook = {"resource_registry": {"resources": {"server": {"hooks": "post-delete"}}}}
    stack = here.create(template({"server": SERVER}), environment=hook)
    publish = published(here, stack)
    publish()
    stack = here.delete(stack)
    assert (f"{stack.action}_{stack.status}", wanted(here)) == ("DELETE_IN_PROGRESS", [])
    publish()
    assert wanted(here) == []
