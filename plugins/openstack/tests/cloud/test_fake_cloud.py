"""The provider at an OpenStack in memory: lost answers, absent services, refusals, and the number of requests."""

from __future__ import annotations

from datetime import timedelta

import pytest

from openstack_support.fake_openstack import FLAVOR, IMAGE, LARGE
from stoker.model.errors import Invalid
from stoker.model.stack import Status
from stoker_openstack.cloud import controller, orphans
from stoker_openstack.cloud.context import LATE_OBJECTS
from stoker_openstack.cloud.credentials import open_entry, require_entry
from stoker_openstack.cloud.drivers import base, server
from stoker_openstack.cloud.drivers.server import ServerDriver
from stoker_openstack.model import CloudAction, CloudKind
from stoker_openstack.store import cloud_objects
from support import query
from support.http_stub import Said
from support.waiting import until

#: openstacksdk warns of its own support for InfluxDB whenever it reads clouds.yaml.
pytestmark = pytest.mark.filterwarnings("ignore:Support for InfluxDB")
on_sqlite = pytest.mark.parametrize("database_url", ["sqlite"], indirect=True)
SERVERS = "/compute/v2.1/servers"
SERVER = {"name": "web", "imageRef": IMAGE, "flavorRef": "m1.tiny", "networks": "none"}


def test_a_server_starts_changes_and_goes(site, cloud):
    id = site.request(CloudKind.SERVER, {**SERVER, "metadata": {"a": "b"}})
    server = site.complete(id)
    assert server.observed["status"] == "ACTIVE"
    assert server.observed["metadata"] == {
        "a": "b",
        "stoker-resource-id": id,
        "stoker-site": site.context.site,
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


@pytest.mark.parametrize(
    ("kind", "wanted", "path"),
    [
        (CloudKind.SERVER, SERVER, SERVERS),
        (CloudKind.PORT, {"name": "p", "network_id": "private"}, "/network/v2.0/ports"),
    ],
)
def test_a_lost_answer_makes_no_second_object(site, cloud, kind, wanted, path):
    cloud.lost = [("POST", path)]
    item = site.complete(site.request(kind, wanted))
    assert cloud.count("POST", path) == 1
    assert list(cloud.servers if kind is CloudKind.SERVER else cloud.items["ports"]) == [item.external_id]


def test_a_lost_answer_about_routes_is_no_conflict_with_the_same_routes(site, cloud):
    router, routes = cloud.add("routers", name="r", routes=[]), [{"destination": "10.9.0.0/24", "nexthop": "10.0.0.9"}]
    wanted = {"router_id": "r", "routes": routes}
    cloud.lost = [("PUT", f"/network/v2.0/routers/{router['id']}/add_extraroutes")]
    id = site.request(CloudKind.EXTRA_ROUTE_SET, wanted)
    assert site.complete(id).external_id == router["id"]
    assert router["routes"] == routes
    second = site.end(site.request(CloudKind.EXTRA_ROUTE_SET, wanted))
    assert second.error_type == "PhysicalResourceExists"
    assert second.reason == f"The physical resource for ({router['id']},10.9.0.0/24=10.0.0.9) exists."
    site.delete(second.id)
    assert router["routes"] == routes
    site.delete(id)
    assert router["routes"] == []


def test_a_port_takes_the_addresses_of_the_one_that_it_replaces_and_gives_them_back(site, cloud):
    addresses = [{"subnet_id": "s", "ip_address": "10.0.0.50"}]
    wanted = {"name": "p", "network_id": "private", "fixed_ips": addresses}
    cloud.add("subnets", id="s", name="s")
    before = site.complete(site.request(CloudKind.PORT, {**wanted, "description": "mine"}))
    ports = cloud.items["ports"]
    path = f"/network/v2.0/ports/{before.external_id}"
    cloud.lost = [("PUT", path), ("POST", "/network/v2.0/ports")]
    replacing = {**wanted, "stoker:takes_over_from": [before.id]}
    after = site.complete(site.request(CloudKind.PORT, replacing))
    assert cloud.lost == []
    assert [ports[item.external_id]["fixed_ips"] for item in (before, after)] == [[], addresses]
    returned = {**wanted, "stoker:takes_over_from": [after.id], "description": "mine"}
    site.request(CloudKind.PORT, returned, id=before.id)
    site.complete(before.id)
    assert [ports[item.external_id]["fixed_ips"] for item in (before, after)] == [addresses, []]
    assert "stoker:takes_over_from" not in ports[after.external_id]


def look(site, cloud) -> bool:
    """Let the next look for late objects take place, wait for its end, and return whether another one follows."""

    def count() -> int:
        with site.store.read() as tx:
            statement = f"SELECT count(*) FROM jobs WHERE kind = '{LATE_OBJECTS}' AND key = '{site.stack_id}'"
            return int(query.scalar(tx, statement))

    def is_waiting(tx) -> bool:
        return site.work.is_pending(tx, LATE_OBJECTS, site.stack_id)

    def has_looked() -> bool:
        # each time, because a look that has begun before may defer the next one only now
        site.store.write(lambda tx: is_waiting(tx) and site.work.defer_by(tx, LATE_OBJECTS, site.stack_id, {}, tx.now))
        return cloud.count("GET", f"{SERVERS}/detail") > before or count() == 0

    if not count():
        return False
    before = cloud.count("GET", f"{SERVERS}/detail")
    until(has_looked)
    until(lambda: site.store.write(is_waiting) or count() == 0)
    return count() > 0


@on_sqlite
@pytest.mark.parametrize("ending", ["created", "deleted", "retained"])
def test_a_held_request_that_nova_carries_out_later_leaves_no_server(site, cloud, monkeypatch, ending):
    """The looks are bounded, and servers of dropped rows stay."""
    monkeypatch.setattr(base, "_SETTLING", timedelta())
    cloud.held = [("POST", SERVERS)]
    id = site.request(CloudKind.SERVER, SERVER)
    expected = [site.complete(id).external_id]
    if ending == "deleted":
        site.delete(id)
        expected = []
    elif ending == "retained":
        site.store.write(lambda tx: site.cloud.forget(tx, id))
    assert list(cloud.servers) == expected
    assert look(site, cloud) is (ending != "retained")
    cloud.carry_out()
    late = set(cloud.servers) - set(expected)
    assert len(late) == 1
    looks = 1
    while look(site, cloud):
        looks += 1
    assert looks <= 9
    remaining = {id for id, item in cloud.servers.items() if item["OS-EXT-STS:task_state"] != "deleting"}
    assert remaining == ({*expected, *late} if ending == "retained" else set(expected))


@on_sqlite
def test_a_creation_that_is_given_up_by_a_deletion_leaves_no_server(site, cloud, monkeypatch):
    monkeypatch.setattr(base, "_SETTLING", timedelta())
    cloud.held = [("POST", SERVERS)]
    cloud.intercept = lambda asked: (cloud.postponed and asked.verb == "POST" and Said(503)) or None
    id = site.request(CloudKind.SERVER, SERVER)
    until(lambda: bool(cloud.postponed))
    cloud.away.add("compute")
    site.request(CloudKind.SERVER, SERVER, CloudAction.DELETE, id)
    cloud.away.clear()
    assert site.end(id) is None
    cloud.carry_out()
    while look(site, cloud):
        pass
    assert [item for item in cloud.servers.values() if item["OS-EXT-STS:task_state"] != "deleting"] == []


def test_a_deletion_during_the_creation_leaves_nothing(site, cloud):
    cloud.boot_polls = 1000
    id = site.request(CloudKind.SERVER, SERVER)
    until(lambda: bool(cloud.servers))
    site.delete(id)
    assert cloud.servers == {}


def test_a_deletion_that_nova_cannot_carry_out_is_requested_again(site, cloud, monkeypatch):
    """A server whose deletion began while Neutron was away goes to the state ERROR."""
    monkeypatch.setattr(server, "_DELETE_PAUSE", timedelta())
    id = site.request(CloudKind.SERVER, SERVER)
    site.complete(id)
    cloud.failing_deletions = 2
    site.delete(id)
    assert (cloud.servers, cloud.failing_deletions) == ({}, 0)
    id = site.request(CloudKind.SERVER, SERVER)
    site.complete(id)
    cloud.failing_deletions = 1000
    monkeypatch.setattr(server, "_MOST_DELETIONS", 3)
    site.request(CloudKind.SERVER, SERVER, CloudAction.DELETE, id)
    assert site.end(id).reason == 'Server web delete failed: "Message: No network, Code: 500"'


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
    others = cloud.add("images", name="other", **{"stoker-site": site.context.site, "stoker-resource-id": id})
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


QUOTA = "Quota exceeded for instances: Requested 1, but already used 10 of 10 instances"


@on_sqlite
@pytest.mark.parametrize(
    ("changes", "refusal", "reason", "kind"),
    [
        ({"flavorRef": "huge"}, None, "The Flavor (huge) could not be found.", "EntityNotFound"),
        ({"networks": [{"uuid": "nowhere"}]}, None, "The Network (nowhere) could not be found.", "EntityNotFound"),
        ({}, (403, {"message": QUOTA}), f"{QUOTA} (HTTP 403) (Request-ID: req-1)", "Forbidden"),
        ({}, (413, {"message": "Too large"}), "Too large (HTTP 413) (Request-ID: req-1)", "OverLimit"),
    ],
    ids=["flavor", "network", "quota", "too large, without a pause"],
)
def test_a_refusal_fails_at_once_with_its_message(site, cloud, changes, refusal, reason, kind):
    """An unknown name fails before the request."""

    def intercept(asked):
        if refusal is None or (asked.verb, asked.path) != ("POST", SERVERS):
            return None
        return Said(refusal[0], {"fault": refusal[1]}, {"x-openstack-request-id": "req-1"})

    cloud.intercept = intercept
    failed = site.end(site.request(CloudKind.SERVER, {**SERVER, **changes}))
    assert (failed.status, failed.reason, failed.error_type) == (Status.FAILED, reason, kind)
    assert cloud.count("POST", SERVERS) == (refusal is not None)
    cloud.intercept = lambda asked: None
    site.request(CloudKind.SERVER, SERVER, id=failed.id)
    site.complete(failed.id)


def test_a_defect_of_a_driver_fails_the_action_after_some_attempts(site, cloud, monkeypatch):
    def fail(_driver, _run):
        raise LookupError("the defect")

    monkeypatch.setattr(controller, "backoff", lambda _attempts, longest: 0.01)
    with monkeypatch.context() as patches:
        patches.setattr(ServerDriver, "request", fail)
        failed = site.end(site.request(CloudKind.SERVER, SERVER))
    assert failed.status is Status.FAILED
    assert failed.reason == "Unexpected answer of the cloud, or a defect: LookupError: the defect"
    site.request(CloudKind.SERVER, SERVER, id=failed.id)
    site.complete(failed.id)


def test_internal_errors_delay_until_they_have_lasted(site, cloud, monkeypatch):
    """Nova answers so while it cannot reach Neutron; a list call that fails so must not fail what it is for."""
    monkeypatch.setattr(controller, "backoff", lambda _attempts, longest: 0.01)
    failures = ["POST"] * 6 + ["GET"] * 2

    def intercept(asked):
        is_next = failures and asked.verb == failures[0] and asked.path in (SERVERS, f"{SERVERS}/detail")
        is_lookup = asked.query.get("name") is not None
        return Said(500, {"computeFault": {"message": failures.pop(0)}}) if is_next and not is_lookup else None

    cloud.intercept = intercept
    monkeypatch.setattr(base, "_SETTLING", timedelta())
    site.complete(site.request(CloudKind.SERVER, SERVER))
    assert (failures, len(cloud.servers)) == ([], 1)
    monkeypatch.setattr(controller.CloudController._fail_or_retry, "__defaults__", (timedelta(),))
    failures += ["POST"] * 100
    failed = site.end(site.request(CloudKind.SERVER, SERVER))
    assert (failed.status, failed.reason) == (Status.FAILED, "POST (HTTP 500)")


def test_a_login_that_keystone_does_not_answer_ends(site, cloud):
    assert open_entry("fake").session.timeout


@on_sqlite
@pytest.mark.parametrize("status", [413, 429])
def test_too_many_requests_are_repeated_after_the_pause(site, cloud, status):
    refusals = [Said(status, {"overLimit": {"message": "slow down"}}, {"Retry-After": "1"})]

    def intercept(asked):
        is_create = (asked.verb, asked.path) == ("POST", SERVERS)
        return refusals.pop() if is_create and refusals else None

    cloud.intercept = intercept
    id = site.request(CloudKind.SERVER, SERVER)
    until(lambda: site.get(id).reason == "Nova limits the number of requests: slow down")
    site.complete(id)
    assert cloud.count("POST", SERVERS) == 2


@on_sqlite
def test_a_conflict_that_lasts_fails_the_action(site, cloud, monkeypatch):
    id = site.request(CloudKind.SERVER, SERVER)
    external_id = site.complete(id).external_id
    conflict = Said(409, {"conflictingRequest": {"code": 409, "message": "Cannot 'resize' instance in task_state x"}})
    cloud.intercept = lambda asked: conflict if asked.path == f"{SERVERS}/{external_id}/action" else None
    monkeypatch.setattr(base, "_CONFLICT_LIMIT", timedelta())
    site.request(CloudKind.SERVER, {**SERVER, "flavorRef": "m1.large"}, id=id)
    failed = site.end(id)
    assert (failed.status, failed.error_type) == (Status.FAILED, "Conflict")
    assert failed.reason == "Cannot 'resize' instance in task_state x (HTTP 409)"
    assert cloud.count("POST", f"{SERVERS}/{external_id}/action") == 2


@on_sqlite
@pytest.mark.parametrize(
    ("kind", "name", "ending", "assigned"),
    [
        (CloudKind.NETWORK, "dhcp_agent_ids", "/dhcp-agents", "dhcp-networks"),
        (CloudKind.ROUTER, "l3_agent_ids", "/l3-agents", "l3-routers"),
    ],
)
def test_agents_are_those_of_the_template_or_refused_with_the_property(site, cloud, kind, name, ending, assigned):
    agents, permissions = {"a", "b"}, []

    def intercept(asked):
        if asked.path.endswith(ending):
            listed = Said(200, {"agents": [{"id": id} for id in sorted(agents)]})
            return listed if permissions else Said(404, {"NeutronError": {"message": "It could not be found."}})
        if asked.path.startswith("/network/v2.0/agents/"):
            agent = asked.path.split("/")[4]
            assert assigned in asked.path
            agents.symmetric_difference_update({agent})
            return Said(204 if asked.verb == "DELETE" else 201, {})
        return None

    cloud.intercept = intercept
    specification = {"name": "n", f"stoker:{name}": ["b", "c"]}
    failed = site.end(site.request(kind, specification))
    assert f"Property {name} needs existing agents, and the role of an administrator at the cloud" in failed.reason
    permissions.append("admin")
    site.request(kind, specification, id=failed.id)
    site.complete(failed.id)
    assert agents == {"b", "c"}


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


@on_sqlite
def test_the_first_refusal_after_an_outage_is_not_final(site, cloud):
    """Neutron shows no networks to its first requests after a start."""
    answers = [Said(200, {"networks": []})]
    cloud.intercept = lambda asked: answers.pop() if answers and asked.query.get("name") == "private" else None
    cloud.away.add("network")
    port = {"name": "p", "network_id": "private"}
    id = site.request(CloudKind.PORT, port)
    until(lambda: site.get(id).reason.startswith("Waiting for the cloud: Neutron"))
    cloud.away.clear()
    site.complete(id)
    assert (answers, cloud.count("POST", "/network/v2.0/ports")) == ([], 1)
    nowhere = site.end(site.request(CloudKind.PORT, {**port, "network_id": "nowhere"}))
    assert nowhere.reason == "The Network (nowhere) could not be found."


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
    marker = f"stoker:{site.context.site}:{id}"
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


def test_an_adopted_server_stays_as_it_is_until_it_changes(site, cloud):
    external_id = cloud._boot({"name": "web", "flavorRef": FLAVOR, "imageRef": IMAGE, "metadata": {"a": "b"}}).body[
        "server"
    ]["id"]
    address = {"subnet_id": "s", "ip_address": "10.0.0.1"}
    port = {"fixed_ips": [address], "network_id": "n", "mac_address": "m", "device_id": external_id}
    own = cloud.add("ports", **port, name="web-port-0")
    other = cloud.add("ports", **port, name="other")
    networks = [{"subnet": own["id"]}, {"port": other["id"]}]  # the double resolves any id
    specification = {**SERVER, "metadata": {"a": "b"}, "networks": networks}
    before = len(cloud.asked)
    id = site.request(CloudKind.SERVER, specification, CloudAction.ADOPT, external_id=external_id)
    adopted = site.complete(id)
    assert (adopted.external_id, adopted.observed["stoker:adopted_ports"]) == (external_id, [own["id"]])
    assert {verb for verb, _ in cloud.asked[before:]} == {"GET"}
    site.request(CloudKind.SERVER, {**SERVER, "metadata": {"a": "c"}}, id=id)
    assert site.complete(id).observed["metadata"] == {
        "a": "c",
        "stoker-resource-id": id,
        "stoker-site": site.context.site,
    }
    site.delete(id)
    assert (own["id"] in cloud.items["ports"], other["id"] in cloud.items["ports"]) == (False, True)
    missing = site.request(CloudKind.NETWORK, {"name": "n"}, CloudAction.ADOPT, external_id="gone")
    assert site.end(missing).reason == "The Network (gone) could not be found."


@pytest.mark.parametrize("is_clear", [True, False])
def test_a_port_that_a_user_attached_outlives_an_adopted_server(site, cloud, is_clear):
    """Its name ends as those of the server's own ports, by which their owner is recognized."""
    server = {"name": "web", "flavorRef": FLAVOR, "imageRef": IMAGE, "metadata": {}}
    external_id = cloud._boot(server).body["server"]["id"]
    subnets = [cloud.add("subnets", name=name)["id"] for name in ("front", "back")]
    own, foreign = (
        cloud.add(
            "ports",
            name=f"{name}-port-0",
            network_id="n",
            device_id=external_id,
            fixed_ips=[{"subnet_id": subnet, "ip_address": "a"}],
        )
        for name, subnet in (("web", subnets[0]), ("db", subnets[is_clear]))
    )
    specification = {**SERVER, "networks": [{"subnet": "front"}]}
    id = site.request(CloudKind.SERVER, specification, CloudAction.ADOPT, external_id=external_id)
    assert site.complete(id).observed.get("stoker:adopted_ports") == ([own["id"]] if is_clear else None)
    site.delete(id)
    assert (own["id"] in cloud.items["ports"], foreign["id"] in cloud.items["ports"]) == (not is_clear, True)


def test_an_adopted_association_gets_its_id_from_its_objects(site, cloud):
    port = cloud.add("ports")
    floating_ip = cloud.add("floatingips", port_id=port["id"])
    specification = {"floatingip_id": floating_ip["id"], "port_id": port["id"]}
    kind = CloudKind.FLOATING_IP_ASSOCIATION
    id = site.request(kind, specification, CloudAction.ADOPT, external_id="11")
    assert site.complete(id).external_id == f"{floating_ip['id']}:{port['id']}"
    other = site.request(
        kind, {**specification, "port_id": cloud.add("ports")["id"]}, CloudAction.ADOPT, external_id="1"
    )
    assert "could not be found" in site.end(other).reason
    site.delete(other)
    site.delete(id)
    assert cloud.items["floatingips"][floating_ip["id"]]["port_id"] is None


def test_references_of_ec2_are_resolved(site, cloud):
    cloud.items["networks"] = {}
    kind, specification = CloudKind.FLOATING_IP, {"stoker:external_network": True}
    refused = site.request(kind, specification)
    assert site.end(refused).reason == "The cloud has no external network."
    public = cloud.add("networks", name="public", **{"router:external": "true"})
    port = cloud.add("ports", device_id="s")
    id = site.request(kind, {**specification, "stoker:server_id": "s"}, id=refused)
    observed = site.complete(id).observed
    assert (observed["floating_network_id"], observed["port_id"]) == (public["id"], port["id"])
    free = cloud.add("floatingips", floating_ip_address="203.0.113.9", port_id=None)
    target = {"floatingip_id": "203.0.113.9", "stoker:server_id": "s"}
    association = site.complete(site.request(CloudKind.FLOATING_IP_ASSOCIATION, target))
    assert association.external_id == f"{free['id']}:{port['id']}"


def test_a_sweep_finds_objects_without_a_row(site, cloud, store):
    kept = site.complete(site.request(CloudKind.NETWORK, {"name": "kept"}))
    orphan = site.complete(site.request(CloudKind.NETWORK, {"name": "orphan"}))
    store.write(lambda tx: cloud_objects.delete(tx, orphan.id))
    retained = site.complete(site.request(CloudKind.NETWORK, {"name": "retained"}))
    store.write(lambda tx: site.cloud.forget(tx, retained.id))
    foreign = cloud.add("networks", name="other", description="stoker:000000000000:1")
    lost = site.complete(site.request(CloudKind.FLOATING_IP, {"floating_network_id": "private"}))
    cloud.items["floatingips"][lost.external_id]["port_forwardings"] = [{"id": "f"}]
    store.write(lambda tx: cloud_objects.delete(tx, lost.id))
    saved = site.complete(site.request(CloudKind.SERVER, SERVER))
    site.request(CloudKind.SERVER, SERVER, CloudAction.DELETE, saved.id, arguments={"snapshot": True})
    until(lambda: site.get(saved.id).awaits == "images")
    for image in cloud.items["images"].values():
        image["status"] = "active"
    assert site.end(saved.id) is None
    client = site.context.credentials.login.client
    for dry_run in (True, False):
        swept = orphans.collect(store, client, site.context.site, dry_run=dry_run)
        assert [item.what for item in swept if not item.problem] == [
            f"floating IP  ({lost.external_id}) of the cloud fake",
            f"network orphan ({orphan.external_id}) of the cloud fake",
        ]
        assert (orphan.external_id in cloud.items["networks"]) is dry_run
    assert cloud.items["floatingips"] == {}
    assert {kept.external_id, retained.external_id, foreign["id"]} < set(cloud.items["networks"])
    assert len(cloud.items["images"]) == 2  # the saved one stays
