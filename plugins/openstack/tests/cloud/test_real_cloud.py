"""The provider at a real OpenStack: every kind of objects, crashes of Stoker, and outages of Nova."""

from __future__ import annotations

import itertools
import os
import random
import signal
import subprocess
import sys

import pytest

from openstack_support.cloud_sites import cloud_site, real_cloud
from stoker.model.stack import Status
from stoker_openstack.cloud.credentials import SiteCredentials
from stoker_openstack.cloud.nouns import NOUNS
from stoker_openstack.model import CloudAction, CloudKind
from support import databases
from support.waiting import until

pytestmark = [pytest.mark.slow, pytest.mark.timeout(900), pytest.mark.filterwarnings("ignore:Support for InfluxDB")]
SERVER = {"imageRef": "tiny", "flavorRef": "m1.tiny", "networks": [{"uuid": "private"}]}


@pytest.fixture
def clouds():
    return real_cloud()


@pytest.fixture
def site(tmp_path, store, clouds):
    with cloud_site(store, tmp_path, "peer", clouds) as running:
        yield running


@pytest.fixture
def made(site):
    """Request objects; they are deleted in reverse order after the test."""
    ids = []

    def make(kind, specification, **more):
        ids.append(site.request(kind, specification, **more))
        return site.complete(ids[-1])

    yield make
    for id in reversed(ids):
        site.delete(id)


def test_a_server_with_its_network_address_and_volume(site, made):
    network = made(CloudKind.NETWORK, {"name": "t-net", "tags": ["x"]})
    made(
        CloudKind.SUBNET,
        {"name": "t-subnet", "network_id": network.external_id, "ip_version": 4, "cidr": "10.91.0.0/24"},
    )
    made(CloudKind.ROUTER, {"name": "t-router", "external_gateway_info": {"network_id": "public"}})
    made(CloudKind.ROUTER_INTERFACE, {"router_id": "t-router", "subnet_id": "t-subnet"})
    ssh = {"protocol": "tcp", "port_range_min": 22, "port_range_max": 22}
    group = made(CloudKind.SECURITY_GROUP, {"name": "t-group", "stoker:rules": [ssh, {"remote_group_id": "_self"}]})
    assert len(group.observed["security_group_rules"]) == 4  # with Neutron's rules for egress
    port = made(
        CloudKind.PORT,
        {
            "name": "t-port",
            "network_id": "t-net",
            "security_groups": ["t-group"],
            "fixed_ips": [{"subnet_id": "t-subnet"}],
        },
    )
    floating_ip = made(CloudKind.FLOATING_IP, {"floating_network_id": "public"})
    server = made(CloudKind.SERVER, {**SERVER, "name": "t-server", "networks": [{"port": "t-port"}]})
    assert list(server.observed["stoker:ports"]) == [port.external_id]
    association = made(
        CloudKind.FLOATING_IP_ASSOCIATION, {"floatingip_id": floating_ip.external_id, "port_id": "t-port"}
    )
    assert association.observed["port_id"] == port.external_id
    volume = made(CloudKind.VOLUME, {"name": "t-volume", "size": 1, "metadata": {"a": 1}})
    made(CloudKind.VOLUME_ATTACHMENT, {"server_id": "t-server", "volume_id": volume.external_id})
    changed = {**SERVER, "name": "t-server", "flavorRef": "m1.small", "metadata": {"c": "d"}}
    changed["networks"] = [{"port": "t-port"}, {"uuid": "private"}]
    site.request(CloudKind.SERVER, changed, id=server.id)
    after = site.complete(server.id).observed
    assert after["status"] == "ACTIVE"
    assert {"t-net", "private"} == set(after["addresses"])
    assert after["metadata"]["c"] == "d"
    for action, state in ((CloudAction.SUSPEND, "SUSPENDED"), (CloudAction.RESUME, "ACTIVE")):
        site.request(CloudKind.SERVER, changed, action, server.id)
        assert site.complete(server.id).observed["status"] == state


def test_settings_of_routers_floating_ips_and_volume_types(site, made):
    network = made(CloudKind.NETWORK, {"name": "t-inner"})
    subnet = {"name": "t-inner", "network_id": network.external_id, "ip_version": 4, "cidr": "10.92.0.0/24"}
    made(CloudKind.SUBNET, subnet)
    router = made(CloudKind.ROUTER, {"name": "t-inner"})
    made(CloudKind.ROUTER_INTERFACE, {"router_id": "t-inner", "subnet_id": "t-inner"})
    gateway = made(CloudKind.ROUTER_GATEWAY, {"router_id": "t-inner", "network_id": "public"})
    assert gateway.external_id == f"{router.external_id}:{gateway.observed['network_id']}"
    routes = [{"destination": f"10.93.{number}.0/24", "nexthop": "10.92.0.9"} for number in range(2)]
    extra = made(CloudKind.EXTRA_ROUTE_SET, {"router_id": "t-inner", "routes": routes})
    site.request(CloudKind.EXTRA_ROUTE_SET, {"router_id": "t-inner", "routes": routes[1:]}, id=extra.id)
    assert site.complete(extra.id).observed["routes"] == routes[1:]
    taken = site.end(site.request(CloudKind.EXTRA_ROUTE_SET, {"router_id": "t-inner", "routes": routes[1:]}))
    assert taken.error_type == "PhysicalResourceExists"
    site.delete(taken.id)
    port = made(CloudKind.PORT, {"name": "t-inner", "network_id": network.external_id})
    floating_ip = made(CloudKind.FLOATING_IP, {"floating_network_id": "public"})
    forwarding = {
        "floatingip_id": floating_ip.observed["floating_ip_address"],
        "internal_port_id": "t-inner",
        "internal_ip_address": port.observed["fixed_ips"][0]["ip_address"],
        "internal_port": 80,
        "external_port": 8080,
        "protocol": "tcp",
    }
    forwarded = made(CloudKind.PORT_FORWARDING, forwarding)
    site.request(CloudKind.PORT_FORWARDING, {**forwarding, "internal_port": 81}, id=forwarded.id)
    assert site.complete(forwarded.id).observed["internal_port"] == 81

    wanted = {"name": "t-type", "is_public": True, "extra_specs": {"a": "b", "c": 1}, "description": ""}
    volume_type = made(CloudKind.VOLUME_TYPE, wanted)
    encryption = {"provider": "luks", "key_size": 512, "control_location": "front-end", "volume_type": "t-type"}
    encrypted = made(CloudKind.VOLUME_ENCRYPTION, {**encryption, "cipher": "aes-xts-plain64"})
    assert encrypted.external_id == volume_type.external_id
    site.request(CloudKind.VOLUME_ENCRYPTION, {**encryption, "key_size": 256, "cipher": None}, id=encrypted.id)
    assert site.complete(encrypted.id).observed["key_size"] == 256
    changed = {**wanted, "name": "t-other", "is_public": False, "extra_specs": {"a": "d"}, "description": "mine"}
    site.request(CloudKind.VOLUME_TYPE, {**changed, "stoker:projects": ["demo"]}, id=volume_type.id)
    after = site.complete(volume_type.id).observed
    assert (after["name"], after["is_public"], after["description"]) == ("t-other", False, "mine")
    assert after["extra_specs"] == {"a": "d"}
    made(CloudKind.VOLUME_TYPE, {"name": "t-private", "is_public": False, "stoker:projects": ["admin"]})
    volume = made(CloudKind.VOLUME, {"name": "t-private", "size": 1, "volume_type": "t-private"})
    assert volume.observed["volume_type"] == "t-private"


KEY = "ssh-ed25519 AAAAC3NzaC1lZDI1NTE5AAAAIJ9uD0vgYkYJqUwPIVnUWNSSHRGGBXMsIDPFgcy4nWm8"


def test_a_server_with_ports_of_its_own_a_key_tags_and_a_floating_ip(site, made):
    made(CloudKind.KEYPAIR, {"name": "t-own", "public_key": KEY})
    network = made(CloudKind.NETWORK, {"name": "t-own", "description": "mine", "tags": ["x"]})
    assert network.observed["description"] == "mine"
    made(CloudKind.SUBNET, {"name": "t-own", "network_id": "t-own", "ip_version": 4, "cidr": "10.94.0.0/24"})
    made(CloudKind.ROUTER, {"name": "t-own", "external_gateway_info": {"network_id": "public"}})
    made(CloudKind.ROUTER_INTERFACE, {"router_id": "t-own", "subnet_id": "t-own"})
    group = made(CloudKind.SECURITY_GROUP, {"name": "t-own"})
    rule = {"security_group_id": "t-own", "direction": "ingress", "protocol": "tcp", "port_range_min": 80}
    made(CloudKind.SECURITY_GROUP_RULE, {**rule, "port_range_max": 80, "remote_group_id": "t-own"})
    floating_ip = made(CloudKind.FLOATING_IP, {"floating_network_id": "public"})
    mac_address = {"mac_address": "fa:16:3e:00:94:01"}
    own = {"uuid": "t-own", "subnet": "t-own", "fixed_ip": "10.94.0.50", "port_extra_properties": mac_address}
    networks = [{**own, "floating_ip": floating_ip.external_id}, {"uuid": "private"}]
    wanted = {**SERVER, "name": "t-own", "key_name": "t-own", "security_groups": [{"name": "t-own"}], "tags": ["a"]}
    server = made(CloudKind.SERVER, {**wanted, "networks": networks, "stoker:console_types": ["novnc"]})
    (port,) = [port for port in server.observed["stoker:ports"].values() if port["network_id"] == network.external_id]
    assert (port["mac_address"], port["security_groups"]) == ("fa:16:3e:00:94:01", [group.external_id])
    assert list(server.observed["stoker:consoles"]) == ["novnc"]
    address = floating_ip.observed["floating_ip_address"]
    until(lambda: address in str(site.get(server.id).observed["addresses"]))

    changed = {**wanted, "networks": [own], "tags": ["b"], "user_data": "#!/bin/sh", "stoker:rebuilds": 1}
    site.request(CloudKind.SERVER, {**changed, "name": "t-renamed"}, id=server.id)
    after = site.complete(server.id).observed
    assert (after["name"], after["stoker:rebuilds"], list(after["stoker:ports"])) == ("t-renamed", 1, [port["id"]])
    until(lambda: site.get(floating_ip.id).observed["port_id"] is None)
    site.request(CloudKind.SERVER, changed, CloudAction.CHECK, server.id)
    assert site.complete(server.id).observed["status"] == "ACTIVE"


def test_objects_are_adopted_and_ports_pass_their_addresses(site, made):
    network = made(CloudKind.NETWORK, {"name": "t-passed"})
    made(CloudKind.SUBNET, {"name": "t-passed", "network_id": "t-passed", "ip_version": 4, "cidr": "10.95.0.0/24"})
    fixed_ips = [{"subnet_id": "t-passed", "ip_address": "10.95.0.9"}]
    port = {"name": "t-passed", "network_id": "t-passed", "fixed_ips": fixed_ips}
    first = made(CloudKind.PORT, port)
    second = made(CloudKind.PORT, {**port, "name": "t-second", "stoker:takes_over_from": [first.id]})
    assert [address["ip_address"] for address in second.observed["fixed_ips"]] == ["10.95.0.9"]
    adopted = site.request(CloudKind.NETWORK, {"name": "t-p"}, CloudAction.ADOPT, external_id=network.external_id)
    assert site.complete(adopted).observed["name"] == "t-passed"
    site.request(CloudKind.NETWORK, {"name": "t-p"}, id=adopted)
    assert site.complete(adopted).observed["name"] == "t-p"
    image = {"name": "t-image", "container_format": "bare", "disk_format": "raw", "visibility": "private"}
    queued = made(CloudKind.IMAGE, image)
    changes = {"visibility": "shared", "os_distro": "debian", "stoker:members": ["t-member"], "tags": ["x"]}
    site.request(CloudKind.IMAGE, {**image, **changes}, id=queued.id)
    observed = site.complete(queued.id).observed
    assert (observed["visibility"], observed["os_distro"], observed["tags"]) == ("shared", "debian", ["x"])


def test_a_server_that_no_host_can_run_fails_with_novas_fault(site):
    id = site.request(CloudKind.SERVER, {**SERVER, "name": "t-huge", "flavorRef": "m1.huge"})
    failed = site.end(id)
    assert failed.status is Status.FAILED
    assert failed.reason == 'Went to status ERROR due to "Message: No valid host was found. , Code: 500"'
    site.delete(id)


def test_kill_9_makes_no_second_server(tmp_path, sqlite_template, clouds):
    """A process that creates 50 servers is killed at random moments, and so is the one that deletes them."""
    url = databases.sqlite_url(tmp_path, sqlite_template)
    chance = random.Random(os.environ.get("STOKER_TEST_SEED"))
    for action in ("create", "delete"):
        for attempt in itertools.count():
            command = [
                sys.executable,
                "-W",
                "ignore",
                "-m",
                "openstack_support.crashing_site",
                str(tmp_path),
                url,
                action,
            ]
            paths = {"OS_CLIENT_CONFIG_FILE": str(clouds), "PYTHONPATH": os.pathsep.join(sys.path)}
            process = subprocess.Popen(command, env={**os.environ, **paths})
            try:
                assert process.wait(chance.uniform(4, 10) if attempt < 5 else 600) == 0
                break
            except subprocess.TimeoutExpired:
                process.kill()
                process.wait(60)
        names = _names(clouds)
        assert len(names) == len(set(names)) == (50 if action == "create" else 0), names


def test_an_outage_of_nova_only_delays(site, clouds):
    """Nova's process stops while servers start, and continues."""
    ids = [site.request(CloudKind.SERVER, {**SERVER, "name": f"t-outage-{n}"}) for n in range(4)]
    process = int((clouds.parent / "run" / "compute").read_text().split()[0])
    try:
        os.kill(process, signal.SIGSTOP)  # Nova answers nothing, as behind a network that drops packets
        until(lambda: any(site.get(id).reason.startswith("Waiting for the cloud: Nova") for id in ids))
    finally:
        os.kill(process, signal.SIGCONT)
    for id in ids:
        site.complete(id)
    for id in ids:
        site.delete(id)


def _names(clouds):
    """The names of the crashing site's servers."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("OS_CLIENT_CONFIG_FILE", str(clouds))
        servers = NOUNS["server"].list(SiteCredentials("peer").login.client, {"name": "^t-crash-"})
        return sorted(server["name"] for server in servers)
