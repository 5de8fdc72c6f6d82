"""Resource types of a cloud on the cloud of one machine, and the life of a server at a cloud that answers later."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

import pytest
from msgspec.structs import replace

from stoker.model.deployment import Owner
from stoker.model.errors import ActionInProgress, Conflict, StackValidationFailed
from stoker.model.stack import Action, Stack, Status
from stoker.objects import operations
from stoker.resources.base import ADOPTED_NAME
from stoker.stacks import export
from stoker.stacks.operations import Options
from stoker.store import servers, stacks
from stoker.store import stacks as stored_snapshots
from stoker.store.sql import sql
from stoker.store.tx import Tx
from stoker_openstack.model import Cloud, CloudAction, CloudKind, CloudObject
from stoker_openstack.store import cloud_objects
from stoker_openstack.types import nova_server_schema
from stoker_openstack.types.implicit_dependencies import RULES, PlannedResource, without_cycles
from support.stacks import World, world
from support.templates import config, deployment, template


def define(type: str, properties: Mapping[str, Any] | None = None, **more: Any) -> dict[str, Any]:
    """Return the definition of a resource."""
    return {"type": type, **({} if properties is None else {"properties": properties}), **more}


def ref(name: str) -> dict[str, Any]:
    return {"get_resource": name}


def attr(*path: Any) -> dict[str, Any]:
    """Return an output with an attribute of a resource."""
    return {"value": {"get_attr": list(path)}}


NETWORKS: dict[str, Any] = {
    # in an order that only the implicit dependencies of ports, servers and floating IPs correct
    "association": define(
        "OS::Neutron::FloatingIPAssociation", {"floatingip_id": ref("floating"), "port_id": ref("port")}
    ),
    "floating": define("OS::Neutron::FloatingIP", {"floating_network": "public"}),
    "server": define(
        "OS::Nova::Server",
        {
            "name": "web",
            "networks": [
                {"port": ref("port")},
                {"network": ref("net"), "fixed_ip": "10.7.0.9"},
                {"network": "private"},
            ],
        },
    ),
    "port": define(
        "OS::Neutron::Port",
        {
            "network": ref("net"),
            "security_groups": [ref("group")],
            "allowed_address_pairs": [{"ip_address": "10.7.0.100"}],
        },
    ),
    "interface": define("OS::Neutron::RouterInterface", {"router": ref("router"), "subnet": ref("subnet")}),
    "router": define("OS::Neutron::Router", {"external_gateway_info": {"network": "public"}}),
    "subnet": define("OS::Neutron::Subnet", {"network": ref("net"), "cidr": "10.7.0.0/24"}),
    "net": define("OS::Neutron::Net", {"name": "inside", "tags": ["a"]}),
    "group": define(
        "OS::Neutron::SecurityGroup",
        {"rules": [{"protocol": "tcp", "port_range_min": 22, "remote_mode": "remote_group_id"}]},
    ),
}
OUTPUTS = {
    "first": attr("server", "first_address"),
    "networks": attr("server", "networks", "inside"),
    "by_id": attr("server", "networks", ref("net")),
    "port": attr("server", "addresses", "inside", 0, "port"),
    "outside": attr("server", "addresses", "private", 0, "addr"),
    "fixed": attr("port", "fixed_ips", 0, "ip_address"),
    "subnets": attr("port", "subnets", 0, "cidr"),
    "floating": attr("floating", "floating_ip_address"),
    "target": attr("floating", "show", "port_id"),
    "gateway": attr("subnet", "gateway_ip"),
    "rules": attr("group", "show", "security_group_rules"),
}


def test_a_network_with_servers_ports_and_floating_ips(store):
    heat = world(store)
    stack = heat.started(heat.create(template(NETWORKS, outputs=OUTPUTS)))
    assert stack.status is Status.COMPLETE, stack.reason
    outputs, ids = heat.outputs(stack), {name: item.physical_id for name, item in heat.resources(stack).items()}
    assert (outputs["first"], outputs["fixed"], outputs["gateway"]) == ("10.7.0.2", "10.7.0.2", "10.7.0.1")
    assert outputs["networks"] == ["10.7.0.2", outputs["floating"], "10.7.0.9"]
    assert outputs["by_id"] == outputs["networks"]
    assert (outputs["port"], outputs["target"]) == (ids["port"], ids["port"])
    assert outputs["outside"].startswith("127.") and outputs["floating"].startswith("127.")
    assert outputs["subnets"] == "10.7.0.0/24"
    assert [rule["remote_group_id"] for rule in outputs["rules"]] == [ids["group"]]
    assert ids["interface"] == f"{ids['router']}:subnet_id={ids['subnet']}"
    assert ids["association"] == f"{ids['floating']}:{ids['port']}"

    # the server loses its last two interfaces and the floating IP
    fewer = {name: item for name, item in NETWORKS.items() if name != "association"}
    fewer["server"] = define(
        "OS::Nova::Server", {"name": "web", "networks": [{"port": ref("port")}], "metadata": {"a": 1}}
    )
    stack = heat.update(stack, template(fewer, outputs=OUTPUTS))
    assert stack.status is Status.COMPLETE, stack.reason
    assert heat.outputs(stack)["networks"] == ["10.7.0.2"]
    assert heat.resources(stack)["server"].physical_id == ids["server"]

    assert heat.delete(stack).status is Status.COMPLETE
    assert _objects(heat) == []


def test_routers_have_gateways_and_routes_of_their_own_resources(store):
    heat = world(store)
    resources = {name: NETWORKS[name] for name in ("interface", "subnet", "net")}
    resources["router"] = define("OS::Neutron::Router")
    gateway = {"router_id": ref("router"), "network": "public"}
    resources["gateway"] = define("OS::Neutron::RouterGateway", gateway)
    routes = [{"destination": f"10.9.{number}.0/24", "nexthop": f"10.7.0.{number}"} for number in (5, 6, 7)]

    def routed(*sets):
        types = {
            name: {
                "type": "OS::Neutron::ExtraRouteSet",
                "properties": {"router": ref("router"), "routes": chosen},
                **more,
            }
            for name, chosen, more in sets
        }
        outputs = {name: attr("router", "show", name) for name in ("routes", "external_gateway_info")}
        return template({**resources, **types}, outputs=outputs)

    stack = heat.create(routed(("a", routes[:2], {}), ("b", routes[2:], {"depends_on": "a"})))
    assert stack.status is Status.COMPLETE, stack.reason
    outputs, ids = heat.outputs(stack), {name: item.physical_id for name, item in heat.resources(stack).items()}
    assert (outputs["routes"], ids["a"]) == (routes, ids["router"])
    network_id = outputs["external_gateway_info"]["network_id"]
    assert ids["gateway"] == f"{ids['router']}:{network_id}"

    stack = heat.update(stack, routed(("a", routes[1:2], {}), ("b", routes[2:], {})))
    assert sorted(heat.outputs(stack)["routes"], key=str) == routes[1:]

    del resources["gateway"]
    stack = heat.update(stack, routed(("b", routes[2:], {})))
    assert heat.outputs(stack) == {"routes": routes[2:], "external_gateway_info": None}
    assert heat.delete(stack).status is Status.COMPLETE
    with pytest.raises(StackValidationFailed) as invalid:
        heat.create(routed(("a", [{"destination": "10.0.0.1/24", "nexthop": "x"}], {})), name="invalid")
    assert "routes[0].destination: Error validating value '10.0.0.1/24': Invalid net cidr" in str(invalid.value)


def test_a_floating_ip_forwards_a_port(store):
    heat = world(store)

    def forwarding(number):
        wanted = {
            "floating_ip": {"get_attr": ["floating", "floating_ip_address"]},
            "internal_port": ref("port"),
            "internal_ip_address": {"get_attr": ["port", "fixed_ips", 0, "ip_address"]},
            "internal_port_number": number,
            "external_port": 8080,
            "protocol": "tcp",
        }
        return define("OS::Neutron::FloatingIPPortForward", wanted)

    resources = {
        "floating": NETWORKS["floating"],
        "port": define("OS::Neutron::Port", {"network": "private"}),
        "web": forwarding(80),
    }
    outputs = {"shown": attr("floating", "show", "port_forwardings", 0, "internal_port")}
    stack = heat.create(template(resources, outputs=outputs))
    assert stack.status is Status.COMPLETE, stack.reason
    before = heat.resources(stack)["web"].physical_id
    stack = heat.update(stack, template({**resources, "web": forwarding(81)}, outputs=outputs))
    assert (heat.outputs(stack), heat.resources(stack)["web"].physical_id) == ({"shown": 81}, before)
    assert heat.delete(stack).status is Status.COMPLETE
    assert _objects(heat) == []


def test_a_type_of_volumes_and_its_encryption(store):
    heat = world(store)
    properties = {"name": "LUKS", "metadata": {"a": "b"}}
    encryption = {"provider": "luks", "key_size": 512, "volume_type": ref("type")}
    volume = {"size": 1, "volume_type": ref("type")}
    resources = {
        "type": define("OS::Cinder::VolumeType", properties),
        "encryption": define("OS::Cinder::EncryptedVolumeType", encryption),
        "volume": define("OS::Cinder::Volume", volume, depends_on="encryption"),
    }
    outputs = {name: attr("volume", name) for name in ("volume_type", "encrypted")}
    outputs["size"] = attr("encryption", "show", "key_size")
    stack = heat.create(template(resources, outputs=outputs))
    assert heat.outputs(stack) == {"volume_type": "LUKS", "encrypted": "True", "size": 512}
    ids = {name: item.physical_id for name, item in heat.resources(stack).items()}
    assert ids["type"] == ids["encryption"]
    encryption["key_size"] = 256
    stack = heat.update(stack, template(resources, outputs=outputs))
    assert (heat.outputs(stack)["size"], heat.resources(stack)["type"].physical_id) == (256, ids["type"])
    again = heat.create(template(define(resources["type"])), name="again")
    assert "The volume type LUKS already exists." in again.reason
    assert heat.delete(stack).status is Status.COMPLETE
    properties["projects"] = ["p"]
    with pytest.raises(StackValidationFailed) as invalid:
        heat.create(template(define(resources["type"])), name="invalid")
    assert 'Can not specify property "projects" if the volume type is public.' in str(invalid.value)


@pytest.mark.parametrize("is_rolled_back", [False, True])
def test_a_port_passes_its_address_to_its_replacement(store, is_rolled_back):
    heat = world(store)
    properties: dict[str, Any] = {"network": ref("net"), "mac_address": "00-00-00-00-BB-BB"}
    resources = {name: NETWORKS[name] for name in ("net", "subnet")}
    resources["port"] = define("OS::Neutron::Port", properties)
    resources["fixed"] = define("OS::Neutron::Port", {**properties, "fixed_ips": [{"ip_address": "10.7.0.77"}]})
    outputs = {name: attr(name, "fixed_ips", 0, "ip_address") for name in ("port", "fixed")}
    stack = heat.create(template(resources, outputs=outputs))
    assert heat.outputs(stack) == {"port": "10.7.0.2", "fixed": "10.7.0.77"}
    ids = {name: item.physical_id for name, item in heat.resources(stack).items()}
    for name in ("port", "fixed"):
        changed = {**resources[name]["properties"], "mac_address": "00-00-00-00-AA-AA"}
        resources[name] = define("OS::Neutron::Port", changed)
    if is_rolled_back:
        resources["failing"] = define("OS::Heat::TestResource", {"fail": True}, depends_on=["port", "fixed"])
    stack = heat.update(stack, template(resources, outputs=outputs), Options(disable_rollback=False))
    assert (stack.action, stack.status) == ("ROLLBACK" if is_rolled_back else "UPDATE", "COMPLETE"), stack.reason
    assert heat.outputs(stack) == {"port": "10.7.0.2", "fixed": "10.7.0.77"}
    after = {name: item.physical_id for name, item in heat.resources(stack).items()}
    assert (after == ids) is is_rolled_back
    assert len(_objects(heat)) == 4


def test_a_taken_address_is_refused(store):
    heat = world(store)
    ports = {
        name: define("OS::Neutron::Port", {"network": ref("net"), "fixed_ips": [{"ip_address": "10.7.0.77"}]})
        for name in ("first", "second")
    }
    stack = heat.create(template({name: NETWORKS[name] for name in ("net", "subnet")} | ports))
    assert (stack.status, "IP address 10.7.0.77 already allocated in subnet" in stack.reason) == (Status.FAILED, True)


def test_a_generated_private_key_is_shown_and_stored_encrypted(store):
    heat = world(store)
    key = define("OS::Nova::KeyPair", {"name": "k", "save_private_key": True})
    outputs = {name: attr("key", name) for name in ("private_key", "public_key")}
    outputs["name"] = {"value": ref("key")}
    stack = heat.create(template({"key": key}, outputs=outputs))
    shown = heat.outputs(stack)
    assert shown["private_key"].startswith("-----BEGIN OPENSSH PRIVATE KEY-----")
    assert (shown["public_key"].split()[0], shown["name"]) == ("ssh-rsa", "k")
    with store.read() as tx:
        column = tx.scalar(sql("SELECT data FROM resources WHERE name = 'key'"), {})
    assert "PRIVATE KEY" not in column

    other = heat.create(template({"key": key}), name="other")
    assert (other.status, "The keypair k already exists." in other.reason) == (Status.FAILED, True)


def test_a_secret_is_stored_encrypted_and_redacted(store):
    heat = world(store)
    properties = {"payload": "very secret text", "payload_content_type": "text/plain"}
    secret = define("OS::Barbican::Secret", properties)
    stack = heat.create(template({"secret": secret}, outputs={"o": attr("secret", "decrypted_payload")}))
    assert heat.outputs(stack) == {"o": "very secret text"}
    with store.read() as tx:
        columns = tx.execute_fast(sql("SELECT specification, observed FROM cloud_objects"), {})
        assert tx.secrets.redact("very secret text") == "very secret text"
        [item] = cloud_objects.of_kind(tx, heat.project, CloudKind.SECRET)
        assert tx.secrets.redact("very secret text") == "******"
    assert item.specification["payload"] == "very secret text"
    assert "very secret" not in "".join(columns)


def test_a_volume_is_attached_to_one_server_at_a_time(store):
    heat = world(store)
    attachment = {"instance_uuid": ref("server"), "volume_id": ref("volume")}
    resources = {
        "server": define("OS::Nova::Server"),
        "volume": define("OS::Cinder::Volume", {"size": 2, "metadata": {"a": "b"}}),
        "attachment": define("OS::Cinder::VolumeAttachment", attachment),
    }
    outputs = {
        "status": attr("volume", "status"),
        "device": attr("volume", "attachments_list", 0, "device"),
        "metadata": attr("volume", "metadata"),
    }
    stack = heat.started(heat.create(template(resources, outputs=outputs)))
    assert heat.outputs(stack) == {"status": "in-use", "device": "/dev/vdb", "metadata": '{"a": "b"}'}

    second = define("OS::Cinder::VolumeAttachment", attachment, depends_on=["attachment"])
    refused = heat.update(stack, template({**resources, "second": second}))
    assert "is already attached to a server." in refused.reason
    smaller = {**resources, "volume": define("OS::Cinder::Volume", {"size": 1})}
    assert "Shrinking volume is not supported: size 1 is less than 2." in heat.update(stack, template(smaller)).reason
    assert heat.delete(stack).status is Status.COMPLETE


def test_a_container_belongs_to_the_object_store(store):
    heat = world(store)
    container = define(
        "OS::Swift::Container", {"name": "files", "X-Container-Meta": {"color": "red"}, "PurgeOnDelete": True}
    )
    names = ("ObjectCount", "BytesUsed", "RootURL", "WebsiteURL", "DomainName", "HeadContainer")
    outputs = {name: attr("c", name) for name in names}
    stack = heat.create(template({"c": container}, outputs=outputs))
    store.write(lambda tx: operations.put(tx, heat.project, "files", "a.txt", b"12345"))
    shown = heat.outputs(stack)
    assert (shown["ObjectCount"], shown["BytesUsed"], shown["DomainName"]) == ("1", "5", "stoker.test")
    assert shown["WebsiteURL"] == f"{shown['RootURL']}/files"
    assert shown["HeadContainer"]["x-container-meta-color"] == "red"
    assert heat.delete(stack).status is Status.COMPLETE


@pytest.mark.parametrize(
    ("policies", "changes", "is_replaced"),
    [
        ({}, {"user_data": "b"}, True),
        ({"user_data_update_policy": "IGNORE"}, {"user_data": "b"}, False),
        ({"user_data_update_policy": "REBUILD"}, {"user_data": "b"}, False),
        ({}, {"image": "b", "flavor": "b"}, False),
        ({"image_update_policy": "REPLACE"}, {"image": "b"}, True),
        ({"flavor_update_policy": "REPLACE"}, {"flavor": "b"}, True),
        ({}, {"key_name": "b"}, True),
        ({}, {"metadata": {"b": "c"}, "name": "b", "tags": ["b"]}, False),
    ],
)
def test_update_policies_decide_whether_a_server_is_replaced(store, policies, changes, is_replaced):
    heat = world(store)
    before = {"user_data": "a", "image": "a", "flavor": "a", **policies}
    stack = heat.started(heat.create(template({"s": define("OS::Nova::Server", before)})))
    id = heat.resources(stack)["s"].physical_id
    after = define("OS::Nova::Server", {**before, **changes})
    stack = heat.started(heat.update(stack, template({"s": after})))
    assert stack.status is Status.COMPLETE, stack.reason
    assert (heat.resources(stack)["s"].physical_id != id) is is_replaced


def test_an_external_object_is_referred_to_and_stays(store):
    heat = world(store)
    owner = heat.create(template({"net": define("OS::Neutron::Net", {"name": "n"})}), name="owner")
    id = heat.resources(owner)["net"].physical_id
    outputs = {"name": attr("net", "name")}
    referring = {"net": define("OS::Neutron::Net", external_id=id)}
    stack = heat.create(template(referring, outputs=outputs))
    assert (heat.outputs(stack), heat.resources(stack)["net"].physical_id) == ({"name": "n"}, id)
    assert heat.delete(stack).status is Status.COMPLETE
    assert [item.external_id for item in _objects(heat)] == [id]
    missing = heat.create(template({"net": define("OS::Neutron::Net", external_id="x")}), name="missing")
    assert "The network (x) could not be found." in missing.reason


def test_retained_objects_stay_and_can_be_adopted_by_name(store):
    heat = world(store)
    net = define("OS::Neutron::Net", {"name": "kept"}, deletion_policy="Retain")
    stack = heat.create(template({"net": net}))
    id = heat.resources(stack)["net"].physical_id
    heat.delete(stack)
    port = define("OS::Neutron::Port", {"network": "kept"})
    outputs = {"id": attr("port", "network_id")}
    assert heat.outputs(heat.create(template({"port": port}, outputs=outputs), name="t")) == {"id": id}


WITHOUT_CLOUD = (
    "These resources need a cloud: OS::Nova::Server (server); OS::Neutron::Net (net, net2). No cloud is configured:"
    " start Stoker with --cloud NAME (a cloud in clouds.yaml), or, for development, with --local-servers-unsafe; or map"
    " the types to others in the environment's resource_registry."
)


def test_without_a_cloud_all_types_are_named_at_once(store):
    heat = world(store, cloud="none")
    resources = {
        "server": define("OS::Nova::Server"),
        "net": define("OS::Neutron::Net"),
        "net2": define("OS::Neutron::Net"),
    }
    with pytest.raises(StackValidationFailed) as caught:
        heat.create(template(resources))
    assert caught.value.message == WITHOUT_CLOUD
    mapped = {"resource_registry": {name: "OS::Heat::None" for name in ("OS::Nova::Server", "OS::Neutron::Net")}}
    assert heat.create(template(resources), environment=mapped).status is Status.COMPLETE


@pytest.mark.parametrize(
    ("type", "properties", "words"),
    [
        ("OS::Neutron::Net", {"nmae": "x"}, "Unknown Property nmae"),
        ("OS::Neutron::Subnet", {"cidr": "10.0.0.0/8"}, "Property network not assigned"),
        ("OS::Neutron::Subnet", {"network": "n"}, "one of the following properties|Either of the following"),
        ("OS::Neutron::Subnet", {"network": "n", "cidr": "c", "subnetpool": "p"}, "at the same time: cidr, subnetpool"),
        ("OS::Neutron::Subnet", {"network": "n", "cidr": "c", "ipv6_ra_mode": "slaac"}, "not supported for ipv4"),
        ("OS::Neutron::Port", {}, "Property network not assigned"),
        ("OS::Neutron::RouterInterface", {"router": "r"}, "Either of the following .*: subnet, port"),
        ("OS::Neutron::RouterInterface", {"router": "r", "subnet": "s", "port": "p"}, "at the same time: subnet, port"),
        ("OS::Neutron::Router", {"ha": True, "distributed": True}, "at the same time: distributed, ha"),
        ("OS::Neutron::SecurityGroup", {"name": "default"}, 'the name "default"'),
        ("OS::Neutron::SecurityGroup", {"rules": [{"port_range_min": 2, "port_range_max": 1}]}, "must not exceed"),
        ("OS::Neutron::SecurityGroup", {"rules": [{"protocol": "xyz"}]}, "not an allowed value"),
        ("OS::Neutron::FloatingIP", {}, "Property floating_network not assigned"),
        ("OS::Cinder::Volume", {}, '"size"'),
        ("OS::Cinder::VolumeType", {"name": "x" * 256}, "Value must have at most 255 characters, not 256"),
        ("OS::Cinder::Volume", {"size": 1, "image": "i", "snapshot_id": "s"}, "at the same time: image, snapshot_id"),
        ("OS::Glance::WebImage", {"location": "u", "container_format": "ami", "disk_format": "raw"}, "must match"),
        ("OS::Barbican::Secret", {"payload": "x"}, "payload_content_type is needed"),
        ("OS::Nova::KeyPair", {"name": ""}, "between 1 and 255"),
        ("OS::Nova::KeyPair", {"name": "k", "type": "x509"}, "needs public_key"),
        ("OS::Nova::Server", {"networks": [{"fixed_ip": "10.0.0.1"}]}, "should be set for the specified network"),
        ("OS::Nova::Server", {"networks": [{"port": "p", "fixed_ip": "10.0.0.1"}]}, "networks.port, networks.fixed_ip"),
        ("OS::Nova::Server", {"networks": [{"allocate_network": "auto"}, {"network": "n"}]}, "allocate_network"),
        (
            "OS::Nova::Server",
            {"block_device_mapping_v2": [{"volume_id": "v", "image": "i"}]},
            "only one of: volume_id, image",
        ),
        (
            "OS::Nova::Server",
            {
                "block_device_mapping_v2": [{"image": "i"}],
                "block_device_mapping": [{"device_name": "vda", "volume_id": "v"}],
            },
            "at the same time: block_device_mapping",
        ),
        ("AWS::EC2::Volume", {"AvailabilityZone": "nova"}, "needs Size or SnapshotId"),
        (
            "AWS::EC2::EIPAssociation",
            {"EIP": "a", "AllocationId": "b", "InstanceId": "c"},
            "either EIP or AllocationId",
        ),
        ("AWS::EC2::EIPAssociation", {"EIP": "a"}, "either InstanceId or NetworkInterfaceId"),
        ("AWS::EC2::EIPAssociation", {"EIP": "", "InstanceId": "c"}, "either EIP or AllocationId"),
        (
            "AWS::EC2::SecurityGroup",
            {"GroupDescription": "d", "SecurityGroupIngress": [{"FromPort": "ssh"}]},
            "FromPort must be a number, not 'ssh'",
        ),
    ],
)
def test_wrong_properties_are_refused_before_anything_exists(store, type, properties, words):
    with pytest.raises(StackValidationFailed, match=words):
        world(store).create(template({"r": define(type, properties)}))


def test_other_members_of_a_request_cannot_make_a_name_too_long(store):
    net = define("OS::Neutron::Net", {"value_specs": {"name": "x" * 256}})
    stack = world(store).create(template({"net": net}))
    assert stack.status is Status.FAILED
    assert "name must have at most 255 characters, not 256" in stack.reason


def implied_by_rules(planned):
    found = {
        name: set(RULES[resource.type](resource, planned))
        for name, resource in planned.items()
        if resource.type in RULES
    }
    return {name: others for name, others in found.items() if others}


def test_implicit_dependencies_never_form_a_cycle():
    planned = {
        "port": PlannedResource("OS::Neutron::Port", {"network": "n"}),
        "subnet": PlannedResource("OS::Neutron::Subnet", {"network": "n"}),
    }
    implied = implied_by_rules(planned)
    assert implied == {"port": {"subnet"}}
    planned = {
        "gateway": PlannedResource("OS::Neutron::RouterGateway", {"router": "r", "network": "public"}),
        "routes": PlannedResource("OS::Neutron::ExtraRouteSet", {"router": "r"}),
        "address": PlannedResource("OS::Neutron::FloatingIP", {"floating_network": "public"}),
        "forwarding": PlannedResource("OS::Neutron::FloatingIPPortForward", {}),
        "other": PlannedResource("OS::Neutron::RouterInterface", {"router": "s"}),
        "own": PlannedResource("OS::Neutron::RouterInterface", {"router": "r"}),
    }
    assert implied_by_rules(planned) == {
        "gateway": {"own"},
        "routes": {"own"},
        "address": {"gateway"},
        "forwarding": {"own", "other"},
    }
    stated = {"port": frozenset[str](), "subnet": frozenset({"port"})}
    assert without_cycles(stated, implied) == {}


@dataclass
class SlowCloud:
    """A cloud that ends actions when the test says so, as a cloud elsewhere does."""

    requests: list[CloudObject] = field(default_factory=list)

    def request(self, tx: Tx, wanted: CloudObject) -> CloudObject:
        self.requests.append(wanted)
        before = cloud_objects.find(tx, wanted.id)
        wanted = replace(wanted.following(before), reason="waits")
        (cloud_objects.save if before else cloud_objects.add)(tx, wanted)
        return wanted

    def find(self, tx: Tx, id: str) -> CloudObject | None:
        return cloud_objects.find(tx, id)

    def forget(self, tx: Tx, id: str) -> None:
        cloud_objects.delete(tx, id)


def _end(heat: World, id: str, *, failure: str = "", external_id: str | None = None, **observed: Any) -> None:
    """End the action in progress on the object of a resource."""

    def do(tx: Tx) -> None:
        item = cloud_objects.find(tx, id)
        assert item is not None
        if item.action is CloudAction.DELETE and not failure:
            cloud_objects.delete(tx, id)
        else:
            status = Status.FAILED if failure else Status.COMPLETE
            new_id = external_id or item.external_id
            seen = {**item.observed, **observed}
            cloud_objects.save(tx, replace(item, status=status, reason=failure, external_id=new_id, observed=seen))
        tx.wake(Owner.resource(id))

    heat.store.write(do)


NOVA_ID = "9f7f2ab2-2a7c-4d4e-8f17-0c53d3e5b001"
SERVER: Mapping[str, Any] = {
    "image": "debian",
    "flavor": "small",
    "user_data_format": "SOFTWARE_CONFIG",
    "software_config_transport": "POLL_SERVER_HEAT",
    "user_data": "#!/bin/sh\necho hello",
    "networks": [{"network": "private", "subnet": "s", "port_extra_properties": {"mac_address": "00:00:00:00:00:01"}}],
    "scheduler_hints": {"group": "g"},
    "block_device_mapping_v2": [{"volume_id": "v", "boot_index": 0, "delete_on_termination": True}],
}


def _slow_world(store) -> tuple[World, SlowCloud]:
    cloud = SlowCloud()
    return world(store, cloud=cloud), cloud


def _creating(store, definition: dict[str, Any], **outputs: Any) -> tuple[World, SlowCloud, Stack, str]:
    """Return a world with a stack of the resource ``one``, which its cloud is creating, and the id of the resource."""
    heat, cloud = _slow_world(store)
    stack = heat.create(template({"one": definition}, outputs=outputs))
    return heat, cloud, stack, heat.resources(stack)["one"].id


def _server(**properties: Any) -> dict[str, Any]:
    return define("OS::Nova::Server", {**SERVER, **properties})


def test_a_server_at_a_cloud_gets_novas_id_and_user_data_before(store):
    heat, cloud = _slow_world(store)
    resources = {"server": _server(), "config": config(), "deployment": deployment()}
    stack = heat.create(template(resources))
    [request] = cloud.requests
    assert (request.kind, request.action) == (CloudKind.SERVER, CloudAction.ENSURE)
    wanted = request.specification
    assert '"resource_name": "server"' in wanted["user_data"] and "echo hello" in wanted["user_data"]
    assert (wanted["imageRef"], wanted["flavorRef"], wanted["os:scheduler_hints"]) == (
        "debian",
        "small",
        {"group": "g"},
    )
    assert wanted["networks"] == [
        {
            "uuid": "private",
            "subnet": "s",
            "port_extra_properties": {"admin_state_up": True, "mac_address": "00:00:00:00:00:01"},
        }
    ]
    assert wanted["block_device_mapping_v2"] == [
        {
            "uuid": "v",
            "source_type": "volume",
            "destination_type": "volume",
            "delete_on_termination": True,
            "boot_index": 0,
        }
    ]
    with store.read() as tx:
        column = tx.scalar(sql("SELECT specification FROM cloud_objects"), {})
    assert "echo hello" not in column  # user data contains the agent's password

    id = heat.resources(stack)["server"].id
    _end(heat, id, external_id=NOVA_ID, status="ACTIVE", addresses={"private": [{"addr": "10.0.0.3", "version": 4}]})
    found = heat.resources(stack)
    assert (found["server"].physical_id, found["server"].status) == (NOVA_ID, Status.COMPLETE)
    with store.read() as tx:
        server = servers.find(tx, NOVA_ID)
    assert server is not None and (server.resource_id, server.project_id) == (id, heat.project)
    assert [run.server_id for run in heat.deployments()] == [NOVA_ID]
    assert heat.signal(stack, "deployment").status is Status.COMPLETE

    stack = heat.visit(stack, Action.SUSPEND)
    assert (cloud.requests[-1].action, stack.status) == (CloudAction.SUSPEND, Status.IN_PROGRESS)
    _end(heat, id, status="SUSPENDED")
    assert heat.settled(stack.id).status is Status.COMPLETE
    stack = heat.visit(stack, Action.RESUME)
    _end(heat, id, status="ACTIVE")

    heat.delete(stack)
    assert cloud.requests[-1].action is CloudAction.DELETE
    assert heat.settled(stack.id).status is Status.IN_PROGRESS
    _end(heat, id)
    assert heat.settled(stack.id).status is Status.COMPLETE
    with store.read() as tx:
        assert servers.find(tx, NOVA_ID) is None


def test_a_published_document_is_signed_for_the_id_in_the_user_data(store):
    server = _server(software_config_transport="POLL_TEMP_URL", agent="stoker")
    heat, cloud, _, id = _creating(store, server)
    assert heat.engine.env.keys.present(id, 0) in cloud.requests[0].specification["user_data"]
    _end(heat, id, external_id=NOVA_ID, status="ACTIVE")
    assert heat.work.run("document.publish") == 1
    with store.read() as tx:
        [place] = tx.fetch_all(sql("SELECT container, name FROM objects"), {})
        document = json.loads(operations.read(tx, heat.project, *place)[1])
    assert f'"server_id":"{id}"' in json.dumps(document, separators=(",", ":"))


def test_a_server_in_error_is_replaced_and_a_refused_one_retried(store):
    heat, cloud, stack, first = _creating(store, _server())
    whole = template({"one": _server()})
    _end(heat, first, failure="Quota exceeded for cores.")
    stack = heat.settled(stack.id)
    assert (stack.status, "resources.one: Quota exceeded for cores." in stack.reason) == (Status.FAILED, True)

    heat.update(stack, whole)  # Nova refused: the same resource tries again
    assert heat.resources(stack)["one"].id == first
    _end(heat, first, failure="Went to status ERROR", external_id=NOVA_ID, status="ERROR")
    stack = heat.update(stack, whole)  # the server exists and is broken
    second = heat.resources(stack)["one"].id
    assert second != first
    _end(heat, second, external_id=NOVA_ID.replace("b001", "b002"), status="ACTIVE")
    assert cloud.requests[-1].action is CloudAction.DELETE
    _end(heat, first)
    assert heat.settled(stack.id).status is Status.COMPLETE


def test_a_snapshot_ends_when_the_cloud_has_saved_the_server_and_is_restored(store):
    heat, cloud = _slow_world(store)
    resources = {"server": _server(), "value": define("OS::Heat::Value", {"value": 1})}
    stack = heat.create(template(resources))
    id = heat.resources(stack)["server"].id
    _end(heat, id, external_id=NOVA_ID, status="ACTIVE")

    taken = store.write(lambda tx: export.take_snapshot(tx, heat.engine, stack.id, "s"))
    assert (taken.status, cloud.requests[-1].action) == (Status.IN_PROGRESS, CloudAction.SNAPSHOT)
    assert heat.states(stack) == {"server": "SNAPSHOT_IN_PROGRESS", "value": "SNAPSHOT_COMPLETE"}
    _end(heat, id, **{"stoker:snapshot": {"snapshot_image_id": "saved"}})
    with store.read() as tx:
        ended = stored_snapshots.get_snapshot(tx, stack.id, taken.id)
    assert (ended.status, ended.data["saved"]) == (Status.COMPLETE, {"server": {"snapshot_image_id": "saved"}})

    store.write(lambda tx: export.restore_snapshot(tx, heat.engine, stack.id, ended))
    assert cloud.requests[-1].specification["imageRef"] == "saved"
    with pytest.raises(ActionInProgress):
        store.write(lambda tx: export.delete_snapshot(tx, heat.engine, ended))
    _end(heat, id)
    assert heat.settled(stack.id).status is Status.COMPLETE
    store.write(lambda tx: export.delete_snapshot(tx, heat.engine, ended))
    assert cloud.requests[-1].action is CloudAction.DELETE_SNAPSHOT
    assert cloud.requests[-1].arguments == {"snapshot_image_id": "saved"}


def test_a_snapshot_fails_with_its_resource_or_when_another_operation_begins(store):
    heat, _, stack, id = _creating(store, _server())
    _end(heat, id, external_id=NOVA_ID, status="ACTIVE")

    failed = store.write(lambda tx: export.take_snapshot(tx, heat.engine, stack.id, "f"))
    _end(heat, id, failure="No space left")
    heat.update(stack, template({"one": _server()}))
    _end(heat, id, status="ACTIVE")
    superseded = store.write(lambda tx: export.take_snapshot(tx, heat.engine, stack.id, "s"))
    heat.delete(stack)
    with store.read() as tx:
        stored = {item.id: item for item in stored_snapshots.list_snapshots(tx, stack.id)}
    assert {item.status for item in stored.values()} <= {Status.FAILED}
    assert "No space left" in stored[failed.id].reason
    assert "has superseded the snapshot" in stored[superseded.id].reason


def test_actions_leave_an_external_server_as_it_is(store):
    external = define("OS::Nova::Server", {"image": "i", "flavor": "f"}, external_id=NOVA_ID)
    heat, cloud, stack, id = _creating(store, external)
    [request] = cloud.requests
    assert (request.action, request.external_id, request.specification) == (CloudAction.CHECK, NOVA_ID, {})
    _end(heat, id, status="ACTIVE", name="theirs")
    assert heat.settled(stack.id).status is Status.COMPLETE
    assert heat.visit(stack, Action.SUSPEND).status is Status.COMPLETE
    assert heat.visit(stack, Action.RESUME).status is Status.COMPLETE
    assert heat.delete(stack).status is Status.COMPLETE
    assert cloud.requests == [request]


@pytest.mark.parametrize(("present", "missing"), [("flavor", "image"), ("image", "flavor")])
def test_a_cloud_needs_image_and_flavor(store, present, missing):
    heat, cloud = _slow_world(store)
    stack = heat.create(template({"server": define("OS::Nova::Server", {present: "x"})}))
    assert (stack.status, cloud.requests) == (Status.FAILED, [])
    assert missing in stack.reason


def test_changed_user_data_counts_a_rebuild(store):
    heat, cloud, stack, id = _creating(store, _server(user_data_update_policy="REBUILD"))
    _end(heat, id, external_id=NOVA_ID, status="ACTIVE")
    heat.update(stack, template({"one": _server(user_data_update_policy="REBUILD", user_data="new")}))
    assert cloud.requests[-1].specification["stoker:rebuilds"] == 1
    assert "new" in cloud.requests[-1].specification["user_data"]


@pytest.mark.parametrize(
    ("path", "types"),
    [
        (["console_urls", "novnc"], ["novnc"]),
        (["console_urls"], ["novnc", "xvpvnc", "spice-html5", "rdp-html5", "serial", "webmks"]),
        (["networks"], []),
    ],
)
@pytest.mark.parametrize("database_url", ["sqlite"], indirect=True)
def test_consoles_are_requested_that_the_template_reads(store, path, types):
    heat, cloud, stack, id = _creating(store, _server(), it=attr("one", *path))
    assert cloud.requests[-1].specification["stoker:console_types"] == types
    urls = {name: f"http://{name}" for name in types}
    _end(heat, id, external_id=NOVA_ID, **{"stoker:consoles": urls})
    if types:
        assert heat.outputs(heat.settled(stack.id))["it"] == (urls["novnc"] if len(path) > 1 else urls)


@pytest.mark.parametrize("database_url", ["sqlite"], indirect=True)
def test_a_transaction_reads_the_template_once_for_the_consoles_of_all_servers(store, monkeypatch):
    heat, cloud = _slow_world(store)
    read: list[str] = []
    source = stacks.source
    monkeypatch.setattr(stacks, "source", lambda tx, id: read.append(id) or source(tx, id))
    resources = {f"s{n}": _server() for n in range(5)}
    heat.create(template(resources))
    assert len(cloud.requests) == 5
    assert len(read) == 1


@pytest.mark.parametrize("database_url", ["sqlite"], indirect=True)
def test_results_of_a_source_are_derived_again_when_it_changes(store):
    heat, _ = _slow_world(store)
    stack = heat.create(template({}, description="before"))
    calls: list[str] = []

    def describe(source) -> str:
        calls.append(source.template["description"])
        return calls[-1]

    def do(tx: Tx) -> list[str]:
        first = [stacks.derive_from_source(tx, stack.id, describe) for _ in range(2)]
        before = stacks.source(tx, stack.id)
        stacks.set_source(tx, stack.id, replace(before, template={**before.template, "description": "after"}))
        return [*first, stacks.derive_from_source(tx, stack.id, describe)]

    assert heat.store.write(do) == ["before", "before", "after"]
    assert calls == ["before", "after"]


@pytest.mark.parametrize("database_url", ["sqlite"], indirect=True)
def test_the_metadata_of_a_volume_is_shown_without_the_marker(store):
    outputs = {name: attr("one", name) for name in ("metadata", "metadata_values")}
    volume = define("OS::Cinder::Volume", {"size": 1, "metadata": {"a": "b"}})
    heat, _, stack, id = _creating(store, volume, **outputs)
    _end(heat, id, external_id="v", metadata={"a": "b", "stoker-site": "s", "stoker-resource-id": id})
    assert heat.outputs(heat.settled(stack.id)) == {"metadata": '{"a": "b"}', "metadata_values": {"a": "b"}}


def test_addresses_of_detached_ports_are_left_out():
    fixed_ips = [{"subnet_id": "s", "ip_address": "10.0.0.1"}]
    port = {"id": "p", "network_id": "n", "mac_address": "m1", "fixed_ips": fixed_ips}
    entries = [
        {"addr": "10.0.0.1", "OS-EXT-IPS-MAC:mac_addr": "m1"},
        {"addr": "203.0.113.1", "OS-EXT-IPS-MAC:mac_addr": "m1"},
        {"addr": "10.0.0.2", "OS-EXT-IPS-MAC:mac_addr": "m2"},
    ]
    server = {"addresses": {"net": entries}, "stoker:ports": {"p": port}}
    addresses = ["10.0.0.1", "203.0.113.1"]
    assert nova_server_schema.read_attribute(server, "networks") == {"net": addresses, "n": addresses}
    assert nova_server_schema.read_attribute({"addresses": {"net": entries[2:]}}, "first_address") == "10.0.0.2"


def _objects(heat: World) -> list[CloudObject]:
    with heat.store.read() as tx:
        items = [item for kind in CloudKind for item in cloud_objects.of_kind(tx, heat.project, kind)]
        return [heat.engine.env.provider.offered[Cloud].find(tx, item.id) for item in items]


def test_removed_gateway_and_pools_of_a_subnet_are_emptied(store):
    bare = {"network": "n", "cidr": "10.8.0.0/24"}
    more = {"gateway_ip": "10.8.0.9", "allocation_pools": [{"start": "10.8.0.10", "end": "10.8.0.20"}]}
    heat, _, stack, id = _creating(store, define("OS::Neutron::Subnet", {**bare, **more}))
    _end(heat, id, external_id="s1")
    heat.update(stack, template({"one": define("OS::Neutron::Subnet", bare)}))
    (item,) = _objects(heat)
    assert (item.specification["gateway_ip"], item.specification["allocation_pools"]) == (None, [])


def test_a_gateway_that_a_failed_update_removed_is_removed_by_the_next_one(store):
    router = define("OS::Neutron::Router", {"external_gateway_info": {"network": "public"}})
    heat, _, stack, id = _creating(store, router)
    _end(heat, id, external_id="r1")
    for failure in ("Conflict", ""):
        heat.update(stack, template({"one": define("OS::Neutron::Router")}))
        (item,) = _objects(heat)
        assert item.specification["external_gateway_info"] == {}
        _end(heat, id, failure=failure)
    heat.update(stack, template({"one": define("OS::Neutron::Router", {"tags": ["a"]})}))
    (item,) = _objects(heat)
    assert "external_gateway_info" not in item.specification  # a resource RouterGateway may have set one since


def test_mac_addresses_have_the_form_that_neutron_shows(store):
    port = define("OS::Neutron::Port", {"network": "n", "mac_address": "00-00-00-00-BB-BB"})
    (item,) = _objects(_creating(store, port)[0])
    assert item.specification["mac_address"] == "00:00:00:00:bb:bb"


EC2 = {
    "group": define(
        "AWS::EC2::SecurityGroup",
        {
            "GroupDescription": "ssh",
            "SecurityGroupIngress": [
                {"IpProtocol": "tcp", "FromPort": "22", "ToPort": "22", "CidrIp": "0.0.0.0/0"},
                {"IpProtocol": "icmp", "FromPort": "-1", "ToPort": "-1"},
            ],
        },
    ),
    "instance": define(
        "AWS::EC2::Instance",
        {
            "ImageId": "i",
            "InstanceType": "f",
            "UserData": "#!/bin/sh",
            "SecurityGroups": [ref("group")],
            "Tags": [{"Key": "a", "Value": "b"}],
            "BlockDeviceMappings": [{"DeviceName": "vdb", "Ebs": {"SnapshotId": "s"}}],
        },
        metadata={"AWS::CloudFormation::Init": {"config": {}}},
    ),
    "volume": define("AWS::EC2::Volume", {"Size": 2, "AvailabilityZone": "nova"}),
    "attachment": define(
        "AWS::EC2::VolumeAttachment", {"InstanceId": ref("instance"), "VolumeId": ref("volume"), "Device": "/dev/vdc"}
    ),
    "address": define("AWS::EC2::EIP", {"InstanceId": ref("instance")}),
    "other": define("AWS::EC2::EIP"),
    "association": define(
        "AWS::EC2::EIPAssociation", {"EIP": ref("other"), "AllocationId": "", "InstanceId": ref("instance")}
    ),
}


def test_types_of_ec2_are_objects_of_the_cloud(store):
    heat = world(store)
    outputs = {
        "address": {"value": ref("address")},
        "allocation": attr("address", "AllocationId"),
        "ip": attr("instance", "PublicIp"),
        "zone": attr("instance", "AvailabilityZone"),
    }
    stack = heat.started(heat.create(template(EC2, outputs=outputs)))
    assert stack.status is Status.COMPLETE, stack.reason
    by_kind = {item.kind: item for item in _objects(heat)}
    server = by_kind[CloudKind.SERVER]
    assert (server.specification["imageRef"], server.specification["flavorRef"]) == ("i", "f")
    assert server.specification["metadata"] == {"a": "b"}
    (device,) = server.specification["block_device_mapping_v2"]
    assert (device["uuid"], device["source_type"], device["delete_on_termination"]) == ("s", "snapshot", True)
    rules = by_kind[CloudKind.SECURITY_GROUP].specification["stoker:rules"]
    assert [(rule["protocol"], rule.get("port_range_min")) for rule in rules] == [("tcp", 22), ("icmp", None)]
    assert by_kind[CloudKind.VOLUME].observed["status"] == "in-use"
    port_ids = {item.observed["port_id"] for item in _objects(heat) if item.kind is CloudKind.FLOATING_IP}
    assert len(port_ids) == 1
    assert None not in port_ids
    values = heat.outputs(stack)
    assert values["address"].startswith("127.")
    assert values["ip"].startswith("127.")
    assert (values["allocation"], values["zone"]) == (heat.resources(stack)["address"].physical_id, "nova")
    instance: dict[str, Any] = EC2["instance"]
    properties = {**instance["properties"], "InstanceType": "g"}
    changed = {**EC2, "instance": {**instance, "properties": properties}}
    before = heat.resources(stack)["instance"].physical_id
    assert heat.update(stack, template(changed, outputs=outputs)).status is Status.COMPLETE
    assert heat.resources(stack)["instance"].physical_id == before
    assert heat.delete(stack).status is Status.COMPLETE
    assert _objects(heat) == []


def test_an_instance_boots_with_the_user_data_of_the_cfn_tools(store):
    heat, cloud = _slow_world(store)
    stack = heat.create(template({"instance": EC2["instance"], "group": EC2["group"]}))
    _end(heat, heat.resources(stack)["group"].id, external_id="g")
    specification = cloud.requests[-1].specification
    assert "cfn-init-data" in specification["user_data"]
    assert "AWS::CloudFormation::Init" in specification["user_data"]
    assert specification["security_groups"] == [{"name": "g"}]


def _adoption(**physical_ids: str) -> dict[str, Any]:
    """Return the resources of adoption data: networks with these ids."""
    return {name: {"type": "OS::Neutron::Net", "resource_id": id} for name, id in physical_ids.items()}


NETS = {name: define("OS::Neutron::Net", {"name": name}) for name in ("taken", "lost", "slow")}


def _failed_adoption(store) -> tuple[World, SlowCloud, Stack]:
    """Return a stack whose adoption is complete for one network, failed for another, in progress for the third."""
    heat, cloud = _slow_world(store)
    stack = heat.create(template(NETS), adopt=_adoption(taken="t1", lost="l1", slow="s1"))
    resources = heat.resources(stack)
    _end(heat, resources["taken"].id, name="old-name")
    _end(heat, resources["lost"].id, failure="The network (l1) could not be found.")
    stack = heat.settled(stack.id)
    assert (stack.action, stack.status) == (Action.ADOPT, Status.FAILED)
    return heat, cloud, stack


def test_the_deletion_of_a_failed_adoption_leaves_all_objects(store):
    heat, cloud, stack = _failed_adoption(store)
    assert heat.delete(stack).status is Status.COMPLETE
    assert {request.action for request in cloud.requests} == {CloudAction.ADOPT}
    assert _objects(heat) == []

    nested = {"inner": define("inner.yaml"), "lost": NETS["lost"]}
    files = {"inner.yaml": json.dumps(template({"taken": NETS["taken"]}))}
    inner = {"type": "inner.yaml", "resource_id": "n1", "resources": _adoption(taken="t2")}
    stack = heat.create(template(nested), "outer", adopt={"inner": inner, **_adoption(lost="l2")}, files=files)
    for row in _objects(heat):
        _end(heat, row.id, failure="" if row.external_id == "t2" else "broken")
    assert heat.delete(stack).status is Status.COMPLETE
    assert {request.action for request in cloud.requests} == {CloudAction.ADOPT}
    assert _objects(heat) == []


def test_an_update_after_a_failed_adoption_adopts_again(store):
    heat, cloud, stack = _failed_adoption(store)
    before = len(cloud.requests)
    _end(heat, heat.resources(stack)["slow"].id, failure="broken")
    stack = heat.update(stack, template(NETS))
    assert {(request.external_id, request.action) for request in cloud.requests[before:]} == {
        ("l1", CloudAction.ADOPT),
        ("s1", CloudAction.ADOPT),
    }
    resources = heat.resources(stack)
    _end(heat, resources["lost"].id, name="lost-before")
    _end(heat, resources["slow"].id, failure="broken")
    assert heat.resources(stack)["lost"].data[ADOPTED_NAME] == "lost-before"
    before = len(cloud.requests)  # without the resource whose adoption failed again, the stack is complete
    stack = heat.update(stack, template({name: NETS[name] for name in ("taken", "lost")}))
    assert (stack.status, cloud.requests[before:]) == (Status.COMPLETE, [])
    heat.delete(stack)
    assert {request.action for request in cloud.requests[before:]} == {CloudAction.DELETE}
    assert {row.external_id for row in _objects(heat)} == {"t1", "l1"}


def test_an_object_is_not_changed_before_its_adoption_is_complete(store):
    heat, cloud = _slow_world(store)
    stack = heat.create(template({"net": NETS["slow"]}), adopt=_adoption(net="n1"))
    changed = {"net": define("OS::Neutron::Net", {"name": "other"})}
    stack = heat.update(stack, template(changed))
    assert (stack.status, [request.action for request in cloud.requests]) == (Status.FAILED, [CloudAction.ADOPT])
    assert "The network (n1) is not adopted: waits" in stack.reason
    _end(heat, heat.resources(stack)["net"].id, name="n")
    heat.update(stack, template(changed))
    assert cloud.requests[-1].action is CloudAction.ENSURE


def test_objects_of_other_stacks_are_not_adopted(store):
    heat, _ = _slow_world(store)
    heat.create(template({"net": NETS["slow"]}), adopt=_adoption(net="n1"))
    with pytest.raises(Conflict, match="net: n1 belongs to net of s"):
        heat.create(template({"net": NETS["slow"]}), name="t", adopt=_adoption(net="n1"))
