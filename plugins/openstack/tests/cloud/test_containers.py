"""Containers at an object store: that of another Stoker, which speaks Swift's protocol."""

from __future__ import annotations

from collections import Counter
from types import SimpleNamespace

import pytest

from openstack_support.cloud_sites import cloud_site
from stoker.failures import ServiceUnavailable
from stoker.model.stack import Status
from stoker_openstack.cloud.client import OBJECT_STORE, CloudClient
from stoker_openstack.model import CloudAction, CloudKind
from support.clouds import write_clouds
from support.server import served
from support.waiting import until

pytestmark = [
    pytest.mark.slow,
    pytest.mark.filterwarnings("ignore:Support for InfluxDB"),
    pytest.mark.parametrize("database_url", ["sqlite"], indirect=True),
]
ACCOUNT = {"x-account-meta-owner": "me"}
WANTED = {
    "name": "a ö",
    "headers": {"x-container-meta-color": "red"},
    "stoker:account_headers": ACCOUNT,
    "stoker:purge_on_delete": True,
}


def wanted(**headers: str):
    """Return the specification with other metadata."""
    return {**WANTED, "headers": {f"x-container-meta-{name}": value for name, value in headers.items()}}


@pytest.fixture(scope="module")
def clouds(tmp_path_factory):
    folder = tmp_path_factory.mktemp("store")
    with served(folder) as running:
        names = ("auth_url", "username", "password", "project_name")
        auth = {name: running.environment[f"OS_{name.upper()}"] for name in names}
        entry = {**auth, "user_domain_name": "Default", "project_domain_name": "Default"}
        yield write_clouds(folder, {"store": {"auth": entry, "region_name": "RegionOne"}})


@pytest.fixture
def requests(monkeypatch):
    """The requests of the drivers: ``sent`` has their number by verb, and the answers to those in ``lost`` are lost."""
    seen, send = SimpleNamespace(sent=Counter(), lost=[]), CloudClient.request

    def record(self, service, verb, *more, **options):
        answer = send(self, service, verb, *more, **options)
        seen.sent[verb] += 1
        if verb in seen.lost:
            seen.lost.remove(verb)
            raise ServiceUnavailable("the answer is lost")
        return answer

    monkeypatch.setattr(CloudClient, "request", record)
    return seen


@pytest.fixture
def site(tmp_path, store, clouds, short_pauses, requests):
    with cloud_site(store, tmp_path, "store", clouds) as running:
        requests.sent.clear()
        yield running


@pytest.fixture
def send(site):
    """Send a request to the object store."""
    client = site.context.credentials.login.client
    return lambda verb, path="", **options: client.request(OBJECT_STORE, verb, path, **options)


PATH = "/a%20%C3%B6"


def test_the_headers_of_a_container_are_those_of_the_specification(site, send, requests):
    id = site.request(CloudKind.CONTAINER, WANTED)
    made = site.complete(id)
    assert (made.external_id, made.observed["x-container-meta-color"]) == ("a ö", "red")
    assert made.observed["stoker:url"].endswith(PATH)
    assert requests.sent["PUT"] == 1
    assert send("HEAD").headers["x-account-meta-owner"] == "me"

    send("PUT", f"{PATH}/object", headers={"Content-Length": "0"})
    requests.sent.clear()
    site.request(CloudKind.CONTAINER, wanted(color="blue", size="9"), id=id)
    changed = site.complete(id).observed
    names = ("x-container-meta-color", "x-container-meta-size", "x-container-object-count")
    assert [changed[name] for name in names] == ["blue", "9", "1"]
    assert requests.sent["PUT"] == 1
    site.request(CloudKind.CONTAINER, wanted(color="blue", size="9"), id=id)
    site.complete(id)
    assert requests.sent["PUT"] == 1  # the headers are the same

    send("POST", PATH, headers={"x-container-meta-size": "8"})
    site.request(CloudKind.CONTAINER, wanted(color="blue", size="9"), id=id)
    assert site.complete(id).observed["x-container-meta-size"] == "9"
    site.delete(id)
    assert site.context.credentials.login.client.get(OBJECT_STORE, "?format=json") == []


def test_a_lost_answer_makes_no_second_request(site, requests):
    requests.lost = ["PUT"]
    id = site.request(CloudKind.CONTAINER, WANTED)
    site.complete(id)
    assert (requests.lost, requests.sent["PUT"]) == ([], 1)
    site.delete(id)


def test_a_container_with_objects_is_deleted_with_them_or_waits(site, send):
    kept = {**WANTED, "stoker:purge_on_delete": False}
    id = site.request(CloudKind.CONTAINER, kept)
    site.complete(id)
    for name in ("b%3F", "c/d"):
        send("PUT", f"{PATH}/{name}", headers={"Content-Length": "0"})
    site.request(CloudKind.CONTAINER, kept, CloudAction.DELETE, id)
    until(lambda: site.get(id).reason.startswith("Waiting: "))
    site.request(CloudKind.CONTAINER, WANTED, CloudAction.DELETE, id)
    assert site.end(id) is None
    missing = site.end(site.request(CloudKind.CONTAINER, WANTED, CloudAction.CHECK, external_id="gone"))
    assert (missing.status, missing.reason) == (Status.FAILED, "The Container (gone) could not be found.")
