"""Every backend driver keeps these promises; add a driver to ``DRIVERS``."""

from __future__ import annotations

import json
import os
import time
from datetime import UTC, datetime, timedelta
from pathlib import Path
from uuid import uuid4

import pytest
import yaml
from msgspec.structs import replace

from stoker.backends.logins import log_in_projects, open_session, open_swift_session
from stoker.backends.swift import SwiftDriver, SwiftVersionsDriver
from stoker.backends.zaqar import ZaqarDriver
from stoker.failures import ServiceUnavailable
from stoker.json_values import decode
from stoker.model.errors import Invalid
from stoker.service_client import ServiceClient
from stoker.store.remote_objects import OBJECT, QUEUE, VERSIONS, RemoteObject
from support.backends import ask
from support.http_stub import Said, answering

#: A port that nothing listens on.
NOWHERE = "http://127.0.0.1:1"


@pytest.fixture(autouse=True)
def clouds(tmp_path, monkeypatch):
    monkeypatch.setenv("OS_CLIENT_CONFIG_FILE", str(tmp_path / "clouds.yaml"))


def swift_client(url):
    auth = {"auth_url": f"{url}/auth/v1.0", "username": "proj:user", "password": "pw"}
    Path(os.environ["OS_CLIENT_CONFIG_FILE"]).write_text(yaml.safe_dump({"clouds": {"swift": {"auth": auth}}}))
    return ServiceClient(f"{url}/v1/AUTH_proj", lambda: open_swift_session("swift", "object_store_cloud"))


def now():
    return datetime.now(UTC)


#: Name → kind of objects, fixture of the service, and a driver for the service at a URL.
DRIVERS = {
    "swift": (OBJECT, "swift", lambda url: SwiftDriver(f"{url}/v1/AUTH_proj", swift_client(url), b"secret", now)),
    "versions": (
        *(VERSIONS, "swift"),
        lambda url: SwiftVersionsDriver(f"{url}/v1/AUTH_proj", swift_client(url), b"secret", now),
    ),
    "zaqar": (
        *(QUEUE, "zaqar"),
        lambda url: ZaqarDriver(
            ServiceClient(url, open_session, log_in_projects(lambda _: None)), b"secret", None, now
        ),
    ),
}


def remote_object(kind, body=None):
    id = str(uuid4())
    return RemoteObject(
        id=id,
        kind=kind,
        name=id if kind == QUEUE else f"{id}/signal",
        project_id="p",
        resource_id=id,
        body=body,
        desired_generation=1,
        observed_generation=0,
        is_removed=False,
        poll_at=None,
        poll_interval=timedelta(0),
        awaited_until=None,
        signed_method=None,
        last_result=None,
        details={},
    )


@pytest.fixture(params=DRIVERS)
def entry(request):
    return DRIVERS[request.param]


@pytest.fixture
def kind(entry):
    return entry[0]


@pytest.fixture
def driver(entry, request):
    _, service, create = entry
    driver = create(request.getfixturevalue(service).url)
    driver.prepare()
    yield driver
    driver.close()


def write(driver, item, text):
    """Write a result as an agent does."""
    if item.kind == QUEUE:
        driver.apply(replace(item, body=json.dumps(text)))
        return
    assert ask("PUT", driver.url(item.name, "PUT"), text).status == 201


def poll(driver, item):
    """Return the data of the new results. Zaqar's age of a message begins with the second after its post."""
    limit = time.monotonic() + 60
    while not (results := driver.poll(item, datetime.now(UTC) - timedelta(minutes=1))):
        assert time.monotonic() < limit
    return results


def test_everything_may_be_repeated(driver, kind):
    item = remote_object(kind)
    driver.prepare()
    for _ in range(2):
        driver.apply(item)
    for _ in range(2):
        driver.remove(item)
    assert driver.poll(item, datetime.now(UTC)) == []


def test_a_result_is_read_until_it_is_removed(driver, kind):
    item = remote_object(kind)
    driver.apply(item)
    assert driver.poll(item, datetime.now(UTC)) == []
    write(driver, item, {"status": "COMPLETE"})
    results = poll(driver, item)
    assert [json.loads(result.data) for result in results] == [{"status": "COMPLETE"}]
    driver.acknowledge(item, results)
    driver.remove(item)
    assert driver.poll(item, datetime.now(UTC) - timedelta(minutes=1)) == []


def test_objects_without_a_record_are_found_and_discarded(driver, kind):
    item = remote_object(kind)
    driver.apply(item)
    write(driver, item, {"status": "COMPLETE"})
    found = {name for names in driver.names() for name in names}
    if kind == QUEUE:  # the place may belong to other clients, too
        assert found == set()
        return
    assert item.name in found
    driver.discard(item.name)
    assert item.name not in {name for names in driver.names() for name in names}


@pytest.mark.parametrize("call", ["prepare", "apply", "remove", "poll"])
def test_an_unreachable_service_is_unavailable(entry, call):
    kind, _, create = entry
    driver, item = create(NOWHERE), remote_object(kind)
    calls = {
        "prepare": driver.prepare,
        "apply": lambda: driver.apply(replace(item, body="{}")),
        "remove": lambda: driver.remove(item),
        "poll": lambda: driver.poll(item, datetime.now(UTC)),
    }
    with pytest.raises(ServiceUnavailable):
        calls[call]()


def test_a_message_that_cannot_be_stored_hides_no_other_from_zaqar():
    """Zaqar stores any JSON. The decoder of signals refuses the first message, and the second ends the run."""
    page = b'{"messages": [%s]}' % b",".join(
        b'{"href": "/v2/queues/q/messages/%d", "age": 0, "body": %s}' % (number, body)
        for number, body in enumerate((b'{"deploy_stdout": "\\ud800"}', b'{"deploy_stdout": "ok"}'))
    )
    with answering(lambda _: Said(200, page)) as zaqar:
        driver = DRIVERS["zaqar"][2](zaqar.url)
        results = driver.poll(remote_object(QUEUE), datetime.now(UTC))
        driver.close()
    with pytest.raises(Invalid):
        decode(results[0].data, "a signal")
    assert decode(results[1].data, "a signal") == {"deploy_stdout": "ok"}
