"""Every resource type of the provider keeps the promises of the server's types."""

from __future__ import annotations

import pytest

from stoker.types import types_of
from stoker_openstack import types
from stoker_openstack.model import CloudKind
from stoker_openstack.store import cloud_objects
from support.stacks import World
from support.type_contract import TypeContract

TYPES = {kind.name: kind for kind in types_of(types)}


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
        "OS::Heat::UpdateWaitConditionHandle",
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
    ]


@pytest.mark.parametrize("kind", TYPES.values(), ids=TYPES)
class TestTypes(TypeContract):
    enough = {
        "AWS::CloudFormation::Stack": {"TemplateURL": "inner.yaml"},
        "AWS::CloudFormation::WaitCondition": {"Handle": "h", "Timeout": 10},
        "AWS::EC2::Instance": {"ImageId": "i", "InstanceType": "f"},
        "AWS::EC2::SecurityGroup": {"GroupDescription": "d"},
        "AWS::EC2::Volume": {"Size": 1},
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
    }
    waits = ("AWS::CloudFormation::WaitCondition",)
    named_at_run_time = {"AWS::CloudFormation::Stack": []}
    files = {"inner.yaml": "heat_template_version: 2018-08-31"}
    connections = {
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

    def check_remains(self, heat: World) -> None:
        with heat.store.read() as tx:
            assert [item for kind in CloudKind for item in cloud_objects.of_kind(tx, heat.project, kind)] == []
