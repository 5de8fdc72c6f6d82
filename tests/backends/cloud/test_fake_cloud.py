"""The provider at an OpenStack in memory: lost answers, absent services, refusals, and the number of requests."""

from __future__ import annotations

import pytest

from stoker.backends.cloud import controller, sweep
from stoker.backends.cloud.credentials import require_entry
from stoker.backends.cloud.drivers.server import ServerDriver
from stoker.model.cloud import CloudAction, CloudKind
from stoker.model.errors import Invalid
from stoker.model.status import Status
from support import fake_openstack
from support.cloud_sites import cloud_site
from support.fake_openstack import FLAVOR, IMAGE, LARGE
from support.http_stub import Said
from support.work import until

#: openstacksdk warns of its own support for InfluxDB whenever it reads clouds.yaml.
pytestmark = pytest.mark.filterwarnings("ignore:Support for InfluxDB")
SERVERS = "/compute/v2.1/servers"
SERVER = {"name": "web", "imageRef": IMAGE, "flavorRef": "m1.tiny", "networks": "none"}


@pytest.fixture
def cloud():
    with fake_openstack.running() as running:
        yield running


@pytest.fixture
def site(tmp_path, store, cloud):
    with cloud_site(store, tmp_path, "fake", fake_openstack.clouds_yaml(tmp_path, cloud)) as running:
        yield running


def test_a_server_starts_changes_and_goes(site, cloud):
    id = site.request(CloudKind.SERVER, {**SERVER, "metadata": {"a": "b"}})
    server = site.complete(id)
    assert server.observed["status"] == "ACTIVE"
    assert server.observed["metadata"] == {
        "a": "b",
        "stoker-resource-id": id,
        "stoker-site": site.provider.site,
    }
    assert "secret-password" not in str(server.observed)
    assert cloud.count("GET", f"{SERVERS}/{server.external_id}") == 0  # its state came from the lists alone
    site.request(CloudKind.SERVER, {**SERVER, "name": "new", "flavorRef": "m1.large", "metadata": {}}, id=id)
    changed = site.complete(id).observed
    assert (changed["name"], changed["flavor"]["id"], changed["status"]) == ("new", LARGE, "ACTIVE")
    for action, state in ((CloudAction.SUSPEND, "SUSPENDED"), (CloudAction.RESUME, "ACTIVE")):
        site.request(CloudKind.SERVER, SERVER, action, id)
        assert site.complete(id).observed["status"] == state
    site.delete(id)
    assert cloud.servers == {}


def test_servers_that_start_together_are_polled_together(site, cloud):
    cloud.boot_polls = 3
    ids = [site.request(CloudKind.SERVER, {**SERVER, "name": f"web-{n}"}) for n in range(12)]
    for id in ids:
        site.complete(id)
    assert cloud.count("POST", SERVERS) == 12
    assert cloud.count("GET", f"{SERVERS}/detail") <= 12  # a list for all of them, not for each
    assert not [
        path for verb, path in cloud.asked if verb == "GET" and path.startswith(f"{SERVERS}/") and "detail" not in path
    ]


def test_a_lost_answer_makes_no_second_server(site, cloud):
    cloud.lost = [("POST", SERVERS)]
    server = site.complete(site.request(CloudKind.SERVER, SERVER))
    assert cloud.count("POST", SERVERS) == 1
    assert list(cloud.servers) == [server.external_id]


def test_a_lost_answer_makes_no_second_port(site, cloud):
    cloud.lost = [("POST", "/network/v2.0/ports")]
    port = site.complete(site.request(CloudKind.PORT, {"name": "p", "network_id": "private"}))
    assert list(cloud.items["ports"]) == [port.external_id]
    assert cloud.count("POST", "/network/v2.0/ports") == 1


def test_a_server_that_appears_late_is_deleted(site, cloud):
    """The lookup after an interruption may come before the first server is visible."""
    cloud.boot_polls = 4
    id = site.request(CloudKind.SERVER, SERVER)
    until(lambda: site.get(id).external_id is not None)
    marker = {"stoker-resource-id": id, "stoker-site": site.provider.site}
    second = cloud._boot({"name": "web", "flavorRef": FLAVOR, "metadata": marker}).body["server"]["id"]
    server = site.complete(id)
    until(lambda: second not in cloud.servers or cloud.servers[second]["OS-EXT-STS:task_state"] == "deleting")
    assert server.external_id in cloud.servers


def test_a_deletion_during_the_creation_leaves_nothing(site, cloud):
    cloud.boot_polls = 1000
    id = site.request(CloudKind.SERVER, SERVER)
    until(lambda: bool(cloud.servers))
    site.delete(id)
    assert cloud.servers == {}


def test_a_deletion_removes_a_port_that_a_superseded_update_dropped(site, cloud):
    extra = [{"uuid": "private", "port_extra_properties": {"mac_address": "fa:16:3e:00:00:01"}}]
    id = site.request(CloudKind.SERVER, {**SERVER, "networks": extra})
    site.complete(id)
    assert len(cloud.items["ports"]) == 1
    cloud.away.add("compute")  # the update does not begin
    site.request(CloudKind.SERVER, SERVER, id=id)
    site.request(CloudKind.SERVER, SERVER, CloudAction.DELETE, id)
    cloud.away.clear()
    assert site.end(id) is None
    assert (cloud.servers, cloud.items["ports"]) == ({}, {})


@pytest.mark.parametrize("action", [CloudAction.ENSURE, CloudAction.DELETE, CloudAction.SNAPSHOT])
def test_an_action_that_supersedes_a_snapshot_deletes_its_image(site, cloud, action):
    id = site.request(CloudKind.SERVER, SERVER)
    site.complete(id)
    others = cloud.add("images", name="other", **{"stoker-site": site.provider.site, "stoker-resource-id": id})
    site.request(CloudKind.SERVER, SERVER, CloudAction.SNAPSHOT, id)
    until(lambda: site.get(id).awaits == "images")
    (first,) = set(cloud.items["images"]) - {others["id"], IMAGE}
    site.request(CloudKind.SERVER, SERVER, action, id)
    until(lambda: first not in cloud.items["images"])
    if action is CloudAction.SNAPSHOT:
        until(lambda: site.get(id).awaits == "images")
        for image in cloud.items["images"].values():
            image["status"] = "active"
        kept = site.complete(id).observed["stoker:snapshot"]["snapshot_image_id"]
        assert set(cloud.items["images"]) == {IMAGE, others["id"], kept}
    else:
        site.end(id)
        assert set(cloud.items["images"]) == {IMAGE, others["id"]}


@pytest.mark.parametrize(
    ("text", "reason"),
    [
        (None, "there is no valid clouds.yaml"),
        ("clouds: {work: {}, home: {}}", "/clouds.yaml has no such cloud; its clouds are: home, work"),
        ("clouds: [", "there is no valid clouds.yaml"),
    ],
)
def test_a_cloud_that_clouds_yaml_lacks_is_refused_at_the_start(tmp_path, monkeypatch, text, reason):
    path = tmp_path / "clouds.yaml"
    monkeypatch.setenv("OS_CLIENT_CONFIG_FILE", str(path))
    monkeypatch.setattr("openstack.config.loader.CONFIG_FILES", [])
    if text is not None:
        path.write_text(text)
    with pytest.raises(Invalid) as refusal:
        require_entry("nowhere")
    assert reason in refusal.value.message
    assert refusal.value.message.startswith("cloud is 'nowhere', but ")
    assert "\n" not in refusal.value.message


def test_a_fault_is_reported_as_heat_does(site, cloud):
    cloud.faults["web"] = "No valid host was found. "
    failed = site.end(site.request(CloudKind.SERVER, SERVER))
    assert failed.status is Status.FAILED
    assert failed.reason == 'Went to status ERROR due to "Message: No valid host was found. , Code: 500"'
    assert (failed.error_type, failed.observed["status"]) == ("ResourceInError", "ERROR")


@pytest.mark.parametrize(
    ("specification", "reason"),
    [
        ({**SERVER, "flavorRef": "huge"}, "The Flavor (huge) could not be found."),
        ({**SERVER, "networks": [{"uuid": "nowhere"}]}, "The Network (nowhere) could not be found."),
    ],
)
def test_an_unknown_name_fails_before_the_request(site, cloud, specification, reason):
    failed = site.end(site.request(CloudKind.SERVER, specification))
    assert (failed.status, failed.reason, failed.error_type) == (Status.FAILED, reason, "EntityNotFound")
    assert cloud.count("POST", SERVERS) == 0
    site.delete(failed.id)


def test_a_quota_fails_at_once_with_its_message(site, cloud):
    message = "Quota exceeded for instances: Requested 1, but already used 10 of 10 instances"
    refusal = Said(403, {"forbidden": {"code": 403, "message": message}}, {"x-openstack-request-id": "req-1"})
    cloud.intercept = lambda asked: refusal if (asked.verb, asked.path) == ("POST", SERVERS) else None
    failed = site.end(site.request(CloudKind.SERVER, SERVER))
    assert failed.reason == f"{message} (HTTP 403) (Request-ID: req-1)"
    assert failed.error_type == "Forbidden"
    cloud.intercept = lambda asked: None
    site.request(CloudKind.SERVER, SERVER, id=failed.id)
    site.complete(failed.id)


def test_a_defect_of_a_driver_fails_the_action_after_some_attempts(site, cloud, monkeypatch):
    def fail(_driver, _run):
        raise LookupError("the defect")

    monkeypatch.setattr(controller, "backoff", lambda _attempts: 0.01)
    with monkeypatch.context() as patches:
        patches.setattr(ServerDriver, "ensure", fail)
        failed = site.end(site.request(CloudKind.SERVER, SERVER))
    assert failed.status is Status.FAILED
    assert failed.reason == "Unexpected answer of the cloud, or a defect: LookupError: the defect"
    site.request(CloudKind.SERVER, SERVER, id=failed.id)
    site.complete(failed.id)


def test_too_many_requests_are_repeated_after_the_pause(site, cloud):
    refusals = [Said(429, {"overLimit": {"message": "slow down"}}, {"Retry-After": "1"})]

    def intercept(asked):
        is_create = (asked.verb, asked.path) == ("POST", SERVERS)
        return refusals.pop() if is_create and refusals else None

    cloud.intercept = intercept
    site.complete(site.request(CloudKind.SERVER, SERVER))
    assert cloud.count("POST", SERVERS) == 2


def test_a_conflict_with_the_state_of_a_server_is_awaited(site, cloud):
    id = site.request(CloudKind.SERVER, SERVER)
    external_id = site.complete(id).external_id
    conflicts = [Said(409, {"conflictingRequest": {"message": "Cannot 'resize' instance while it is in task_state"}})]

    def intercept(asked):
        is_action = asked.path == f"{SERVERS}/{external_id}/action"
        return conflicts.pop() if is_action and conflicts else None

    cloud.intercept = intercept
    site.request(CloudKind.SERVER, {**SERVER, "flavorRef": "m1.large"}, id=id)
    assert site.complete(id).observed["flavor"]["id"] == LARGE
    assert conflicts == []


def test_an_absent_service_delays_and_says_so(site, cloud):
    cloud.away.add("compute")
    id = site.request(CloudKind.SERVER, SERVER)
    network = site.request(CloudKind.NETWORK, {"name": "n"})
    site.complete(network)  # Neutron is there
    until(lambda: site.get(id).reason.startswith("Waiting for the cloud: Nova"))
    assert site.woken[id] >= 1
    cloud.away.clear()
    site.complete(id)
    assert len(cloud.servers) == 1


def test_a_service_that_disappears_during_the_creation_delays_it(site, cloud):
    cloud.boot_polls = 3
    id = site.request(CloudKind.SERVER, SERVER)
    until(lambda: cloud.count("GET", f"{SERVERS}/detail") > 0)
    cloud.away.add("compute")
    until(lambda: site.get(id).reason.startswith("Waiting for the cloud"))
    cloud.away.clear()
    site.complete(id)
    assert cloud.count("POST", SERVERS) == 1


def test_a_refused_login_is_a_reason_to_wait(site, cloud):
    cloud.login_status = 401
    id = site.request(CloudKind.NETWORK, {"name": "n"})
    until(lambda: "refuses the login" in site.get(id).reason)
    cloud.login_status = 201
    site.complete(id)


def test_the_tags_and_the_description_of_the_user_remain(site, cloud):
    wanted = {"name": "n", "description": "mine", "tags": ["a"]}
    id = site.request(CloudKind.NETWORK, wanted)
    network = cloud.items["networks"][site.complete(id).external_id]
    marker = f"stoker:{site.provider.site}:{id}"
    assert (network["description"], network["tags"]) == ("mine", ["a", marker])
    site.request(CloudKind.NETWORK, {**wanted, "name": "m", "description": "", "tags": []}, id=id)
    site.complete(id)
    assert (network["name"], network["description"], network["tags"]) == ("m", marker, [])


def test_an_object_that_disappeared_fails_a_check(site, cloud):
    id = site.request(CloudKind.NETWORK, {"name": "n"})
    external_id = site.complete(id).external_id
    del cloud.items["networks"][external_id]
    site.request(CloudKind.NETWORK, {"name": "n"}, CloudAction.CHECK, id)
    failed = site.end(id)
    assert (failed.status, failed.reason) == (Status.FAILED, f"The Network ({external_id}) could not be found.")
    site.delete(id)


def test_an_adopted_server_gets_the_marker(site, cloud):
    external_id = cloud._boot({"name": "web", "flavorRef": FLAVOR, "imageRef": IMAGE, "metadata": {"a": "b"}}).body[
        "server"
    ]["id"]
    id = site.request(CloudKind.SERVER, {**SERVER, "metadata": {"a": "b"}}, external_id=external_id)
    assert site.complete(id).external_id == external_id
    assert cloud.count("POST", SERVERS) == 0


def test_a_sweep_finds_objects_without_a_row(site, cloud, store):
    kept = site.complete(site.request(CloudKind.NETWORK, {"name": "kept"}))
    orphan = site.complete(site.request(CloudKind.NETWORK, {"name": "orphan"}))
    store.write(lambda tx: site.provider.cloud.forget(tx, orphan.id))
    foreign = cloud.add("networks", name="other", description="stoker:000000000000:1")
    client = site.provider.credentials.login.client
    for dry_run in (True, False):
        swept = sweep.collect(store, client, site.provider.site, dry_run=dry_run)
        assert [item.what for item in swept if not item.problem] == [
            f"network orphan ({orphan.external_id}) of the cloud fake"
        ]
        assert (orphan.external_id in cloud.items["networks"]) is dry_run
    assert {kept.external_id, foreign["id"]} < set(cloud.items["networks"])
