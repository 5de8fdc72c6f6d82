"""Every resource type keeps these promises; a new file in resources/ is tested here unasked."""

from __future__ import annotations

from typing import Any

import pytest

from stoker import resources
from stoker.hot import UNKNOWN
from stoker.model.cloud import CloudKind
from stoker.model.errors import StokerError
from stoker.resources.properties import PropertyError, check
from stoker.store import cloud_objects
from support.stacks import world
from support.templates import template

TYPES = resources.load()

#: Enough properties to create one.
ENOUGH = {
    "OS::Heat::SoftwareDeployment": {"server": "s"},
    "OS::Heat::StructuredDeployment": {"server": "s"},
    "OS::Heat::Value": {"value": 1},
    "OS::Heat::ResourceChain": {"resources": ["OS::Heat::None"]},
    "OS::Heat::ResourceGroup": {"resource_def": {"type": "OS::Heat::None"}},
    "OS::Heat::SoftwareComponent": {"configs": [{"tool": "script", "config": ""}]},
    "OS::Heat::SoftwareDeploymentGroup": {"servers": {"a": "s"}, "signal_transport": "NO_SIGNAL"},
    "OS::Heat::SoftwareDeployments": {"servers": {"a": "s"}, "signal_transport": "NO_SIGNAL"},
    "OS::Heat::StructuredDeploymentGroup": {"servers": {"a": "s"}, "signal_transport": "NO_SIGNAL"},
    "OS::Heat::StructuredDeployments": {"servers": {"a": "s"}, "signal_transport": "NO_SIGNAL"},
    "OS::Heat::WaitCondition": {"handle": "h", "timeout": 10},
    "AWS::CloudFormation::Stack": {"TemplateURL": "inner.yaml"},
    "AWS::CloudFormation::WaitCondition": {"Handle": "h", "Timeout": 10},
    "AWS::EC2::Instance": {"ImageId": "i", "InstanceType": "f"},
    "AWS::EC2::SecurityGroup": {"GroupDescription": "d"},
    "AWS::EC2::Volume": {"Size": 1},
    "OS::Heat::Stack": {"template": "heat_template_version: 2018-08-31"},
    "OS::Heat::SwiftSignal": {"handle": "h", "timeout": 10},
    "OS::Cinder::EncryptedVolumeType": {"provider": "luks", "volume_type": "t"},
    "OS::Cinder::Volume": {"size": 1},
    "OS::Cinder::VolumeType": {"name": "t"},
    "OS::Glance::WebImage": {"location": "http://127.0.0.1:9/i", "container_format": "bare", "disk_format": "raw"},
    "OS::Neutron::FloatingIP": {"floating_network": "public"},
    "OS::Neutron::Port": {"network": "private"},
    "OS::Neutron::Router": {"external_gateway_info": {"network": "public"}},
    "OS::Neutron::SecurityGroupRule": {"security_group": "default"},
    "OS::Neutron::Subnet": {"network": "private", "cidr": "10.1.0.0/24"},
    "OS::Nova::KeyPair": {"name": "key", "public_key": "ssh-ed25519 AAAAC3NzaC1lZDI1NTE5AAAAIAAA"},
    "OS::Zaqar::SignedQueueURL": {"queue": "q"},
    "OS::Zaqar::Subscription": {"queue_name": "q", "subscriber": "http://127.0.0.1:9/"},
}

#: Attributes of types whose attributes are named only at run time; the default is that of deployments.
NAMED_AT_RUN_TIME: dict[str, list[str]] = {"AWS::CloudFormation::Stack": []}
#: The files that ENOUGH names.
FILES = {"inner.yaml": "heat_template_version: 2018-08-31"}

#: What ends them is another resource's.
#: Types whose properties name objects that only another resource creates.
CONNECTIONS = {
    "AWS::EC2::EIPAssociation": (
        {"EIP": {"get_resource": "e"}, "InstanceId": {"get_resource": "s"}},
        {"e": {"type": "AWS::EC2::EIP"}, "s": {"type": "OS::Nova::Server"}},
    ),
    "AWS::EC2::VolumeAttachment": (
        {"InstanceId": {"get_resource": "s"}, "VolumeId": {"get_resource": "v"}, "Device": "/dev/vdb"},
        {"s": {"type": "OS::Nova::Server"}, "v": {"type": "AWS::EC2::Volume", "properties": {"Size": 1}}},
    ),
    "OS::Cinder::VolumeAttachment": (
        {"instance_uuid": {"get_resource": "s"}, "volume_id": {"get_resource": "v"}},
        {"s": {"type": "OS::Nova::Server"}, "v": {"type": "OS::Cinder::Volume", "properties": {"size": 1}}},
    ),
    "OS::Neutron::FloatingIPAssociation": (
        {"floatingip_id": {"get_resource": "f"}, "port_id": {"get_resource": "p"}},
        {
            "f": {"type": "OS::Neutron::FloatingIP", "properties": {"floating_network": "public"}},
            "p": {"type": "OS::Neutron::Port", "properties": {"network": "private"}},
        },
    ),
    "OS::Neutron::FloatingIPPortForward": (
        {
            "floating_ip": {"get_resource": "f"},
            "internal_port": {"get_resource": "p"},
            "internal_ip_address": "10.1.0.2",
            "external_port": 80,
            "protocol": "tcp",
        },
        {
            "f": {"type": "OS::Neutron::FloatingIP", "properties": {"floating_network": "public"}},
            "p": {"type": "OS::Neutron::Port", "properties": {"network": "private"}},
        },
    ),
    "OS::Neutron::ExtraRouteSet": ({"router": {"get_resource": "o"}}, {"o": {"type": "OS::Neutron::Router"}}),
    "OS::Neutron::RouterGateway": (
        {"router_id": {"get_resource": "o"}, "network": "public"},
        {"o": {"type": "OS::Neutron::Router"}},
    ),
    "OS::Neutron::RouterInterface": (
        {"router": {"get_resource": "o"}, "subnet": {"get_resource": "t"}},
        {
            "o": {"type": "OS::Neutron::Router"},
            "n": {"type": "OS::Neutron::Net"},
            "t": {
                "type": "OS::Neutron::Subnet",
                "properties": {"network": {"get_resource": "n"}, "cidr": "10.1.0.0/24"},
            },
        },
    ),
}

#: Attributes are computed from rows that the creation of every type stores on both kinds of database.
ON_SQLITE = pytest.mark.parametrize("database_url", ["sqlite"], indirect=True)

WAITS = ("OS::Heat::WaitCondition", "AWS::CloudFormation::WaitCondition", "OS::Heat::SwiftSignal", "OS::Heat::Stack")


def test_the_public_names_are_exactly_these():
    assert sorted(TYPES) == [
        "AWS::CloudFormation::Stack",
        "AWS::CloudFormation::WaitCondition",
        "AWS::CloudFormation::WaitConditionHandle",
        "AWS::EC2::EIP",
        "AWS::EC2::EIPAssociation",
        "AWS::EC2::Instance",
        "AWS::EC2::SecurityGroup",
        "AWS::EC2::Volume",
        "AWS::EC2::VolumeAttachment",
        "OS::Barbican::Secret",
        "OS::Cinder::EncryptedVolumeType",
        "OS::Cinder::Volume",
        "OS::Cinder::VolumeAttachment",
        "OS::Cinder::VolumeType",
        "OS::Glance::WebImage",
        "OS::Heat::CloudConfig",
        "OS::Heat::Delay",
        "OS::Heat::DeployedServer",
        "OS::Heat::MultipartMime",
        "OS::Heat::None",
        "OS::Heat::RandomString",
        "OS::Heat::ResourceChain",
        "OS::Heat::ResourceGroup",
        "OS::Heat::SoftwareComponent",
        "OS::Heat::SoftwareConfig",
        "OS::Heat::SoftwareDeployment",
        "OS::Heat::SoftwareDeploymentGroup",
        "OS::Heat::SoftwareDeployments",
        "OS::Heat::Stack",
        "OS::Heat::StructuredConfig",
        "OS::Heat::StructuredDeployment",
        "OS::Heat::StructuredDeploymentGroup",
        "OS::Heat::StructuredDeployments",
        "OS::Heat::SwiftSignal",
        "OS::Heat::SwiftSignalHandle",
        "OS::Heat::TestResource",
        "OS::Heat::UpdateWaitConditionHandle",
        "OS::Heat::Value",
        "OS::Heat::WaitCondition",
        "OS::Heat::WaitConditionHandle",
        "OS::Neutron::ExtraRouteSet",
        "OS::Neutron::FloatingIP",
        "OS::Neutron::FloatingIPAssociation",
        "OS::Neutron::FloatingIPPortForward",
        "OS::Neutron::Net",
        "OS::Neutron::Port",
        "OS::Neutron::Router",
        "OS::Neutron::RouterGateway",
        "OS::Neutron::RouterInterface",
        "OS::Neutron::SecurityGroup",
        "OS::Neutron::SecurityGroupRule",
        "OS::Neutron::Subnet",
        "OS::Nova::KeyPair",
        "OS::Nova::Server",
        "OS::Swift::Container",
        "OS::Zaqar::Queue",
        "OS::Zaqar::SignedQueueURL",
        "OS::Zaqar::Subscription",
    ]


@pytest.fixture(params=sorted(TYPES))
def kind(request):
    return TYPES[request.param]


def resources_of(kind) -> dict[str, Any]:
    """Return the resource ``r`` of a type, with the resources that it needs."""
    properties, others = CONNECTIONS.get(kind.name, (ENOUGH.get(kind.name, {}), {}))
    return {"r": {"type": kind.name, "properties": properties}, **others}


def test_defaults_fit_their_own_schema(kind):
    if kind.properties is None:
        return
    given = {name: each.default for name, each in kind.properties.items() if each.default is not None}
    needed = {name: UNKNOWN for name, each in kind.properties.items() if each.required}
    try:
        found = check(kind.properties, {**needed, **given})
    except PropertyError as error:
        raise AssertionError(f"{error.path}: {error.problem}") from None
    assert {name: found[name] for name in given} == given


def test_validation_of_unknown_values_never_fails(kind):
    if kind.properties is None:
        return
    kind.validate(dict.fromkeys(kind.properties, UNKNOWN))


def test_a_resource_is_created_and_deleted_without_remains(kind, store):
    heat = world(store)
    stack = heat.started(heat.create(template(resources_of(kind)), files=FILES))
    found = heat.resources(stack)["r"]
    if kind.name in WAITS:
        assert found.status.value == "IN_PROGRESS"
        heat.delete(stack)
        return
    if found.status.value == "IN_PROGRESS":
        stack = heat.signal_all(stack)
    assert stack.status.value == "COMPLETE"

    stack = heat.delete(stack)
    assert (stack.status.value, heat.resources(stack)) == ("COMPLETE", {})
    assert heat.deployments() == []
    with store.read() as tx:
        assert [object for each in CloudKind for object in cloud_objects.of_kind(tx, heat.project, each)] == []
    assert heat.machines.asked == {}


@ON_SQLITE
def test_known_attributes_can_be_read(kind, store):
    heat = world(store)
    names = NAMED_AT_RUN_TIME.get(kind.name, ["deploy_stdout"]) if kind.attributes is None else kind.attributes
    outputs = {name: {"value": {"get_attr": ["r", name]}} for name in names}
    stack = heat.started(heat.create(template(resources_of(kind), outputs=outputs), files=FILES))

    with heat.store.read() as tx:
        from stoker.stacks.queries import outputs as all_outputs
        from stoker.store import stacks

        found = all_outputs.all_values(tx, heat.engine, stacks.get(tx, stack.id))
    assert [each for each in found if "output_error" in each] == []


@ON_SQLITE
def test_unknown_attributes_are_refused_before_the_creation(kind, store):
    if kind.attributes is None:
        return
    heat = world(store)
    other = {"type": "OS::Heat::Value", "properties": {"value": {"get_attr": ["r", "no_such_thing"]}}}
    with pytest.raises(StokerError, match=r"The Referenced Attribute \(r no_such_thing\) is incorrect"):
        heat.create(template({**resources_of(kind), "other": other}), files=FILES)
