"""The provider at an OpenStack in memory: objects that change because of others, and types of volumes."""

from __future__ import annotations

import pytest

from openstack_support.fake_openstack import IMAGE
from stoker.model.stack import Status
from stoker_openstack.cloud.polling import REFRESH
from stoker_openstack.model import CloudAction, CloudKind
from stoker_openstack.types import nova_server_schema
from support import query
from support.waiting import until

pytestmark = [
    pytest.mark.filterwarnings("ignore:Support for InfluxDB"),
    pytest.mark.parametrize("database_url", ["sqlite"], indirect=True),
]
SERVERS = "/compute/v2.1/servers/detail"
SERVER = {"name": "web", "imageRef": IMAGE, "flavorRef": "m1.tiny"}


def test_a_server_shows_a_floating_ip_that_follows_it(site, cloud):
    port = site.complete(site.request(CloudKind.PORT, {"name": "p", "network_id": "private"}))
    server = site.complete(site.request(CloudKind.SERVER, {**SERVER, "networks": [{"port": port.external_id}]}))
    until(lambda: site.get(port.id).observed["device_id"] == server.external_id)  # as Neutron shows it by now
    floating = site.complete(site.request(CloudKind.FLOATING_IP, {"floating_network_id": "private"}))
    cloud.items["floatingips"][floating.external_id]["floating_ip_address"] = "203.0.113.9"

    def addresses():
        shown = nova_server_schema.read_attribute(site.get(server.id).observed, "addresses")
        return [entry["addr"] for entry in shown.get("private", ())]

    fixed = port.observed["fixed_ips"][0]["ip_address"]
    cloud.away.add("compute")  # the association does not need Nova
    specification = {"floatingip_id": floating.external_id, "port_id": port.external_id}
    association = site.complete(site.request(CloudKind.FLOATING_IP_ASSOCIATION, specification))
    until(lambda: site.get(floating.id).observed.get("port_id") == port.external_id)
    before = cloud.count("GET", SERVERS)
    until(lambda: cloud.count("GET", SERVERS) > before)
    assert addresses() == [fixed]
    cloud.away.clear()
    until(lambda: addresses() == [fixed, "203.0.113.9"])
    before = len(cloud.asked)
    site.delete(association.id)
    until(lambda: addresses() == [fixed])
    until(lambda: site.get(floating.id).observed["port_id"] is None)
    assert cloud.asked[before:].count(("GET", SERVERS)) <= 2
    site.delete(server.id)
    site.delete(port.id)
    until(lambda: not _refreshes(site))


def test_a_server_shows_the_floating_ips_of_its_networks(site, cloud):
    floating = cloud.add("floatingips", floating_ip_address="203.0.113.9")
    port = cloud.add("ports", fixed_ips=[])
    networks = [{"port": port["id"], "floating_ip": floating["id"]}]
    server = site.complete(site.request(CloudKind.SERVER, {**SERVER, "networks": networks}))
    assert floating["port_id"] == port["id"]
    until(lambda: "203.0.113.9" in str(site.get(server.id).observed["addresses"]))
    changed = {**SERVER, "flavorRef": "m1.large", "networks": [{"port": port["id"]}]}  # a resize, which is polled
    site.request(CloudKind.SERVER, changed, id=server.id)
    site.complete(server.id)
    assert floating["port_id"] is None
    until(lambda: "203.0.113.9" not in str(site.get(server.id).observed["addresses"]))


def test_volumes_show_their_attachments_and_change_their_type(site, cloud):
    wanted = {"name": "v", "size": 1, "volume_type": "slow"}
    volume = site.complete(site.request(CloudKind.VOLUME, wanted))
    server = site.complete(site.request(CloudKind.SERVER, {**SERVER, "networks": "none"}))
    specification = {"server_id": server.external_id, "volume_id": volume.external_id}
    attachment = site.complete(site.request(CloudKind.VOLUME_ATTACHMENT, specification))
    until(lambda: site.get(volume.id).observed["attachments"] == [{"server_id": server.external_id}])
    site.delete(attachment.id)
    until(lambda: site.get(volume.id).observed["attachments"] == [])

    fast = cloud.cinder.types[1]["id"]
    for name in ("fast", fast):  # an id names the type that the volume has by now
        site.request(CloudKind.VOLUME, {**wanted, "volume_type": name}, id=volume.id)
        assert site.complete(volume.id).observed["volume_type"] == "fast"
    assert cloud.cinder.actions == [{"os-retype": {"new_type": fast, "migration_policy": "on-demand"}}]
    site.request(CloudKind.VOLUME, {**wanted, "volume_type": "full"}, id=volume.id)
    refused = site.end(volume.id)
    assert (refused.status, refused.reason) == (
        Status.FAILED,
        "Volume retype failed: the volume has the type fast, not full",
    )
    site.request(CloudKind.VOLUME, wanted, CloudAction.DELETE, volume.id)
    assert site.end(volume.id) is None


def _refreshes(site):
    with site.store.read() as tx:
        return query.scalar(tx, f"SELECT count(*) FROM jobs WHERE kind = '{REFRESH}'")
