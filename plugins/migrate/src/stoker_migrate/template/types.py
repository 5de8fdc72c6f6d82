"""Resource types of clouds: which ones a migration replaces, drops or keeps."""

from __future__ import annotations

from enum import Enum, auto

SERVER = "OS::Heat::DeployedServer"
_SERVERS = ("OS::Nova::Server", "AWS::EC2::Instance")
#: Prefixes of types whose objects exist only in a cloud.
_INFRASTRUCTURE = (
    "OS::Nova::",
    "OS::Neutron::",
    "OS::Cinder::",
    "OS::Glance::",
    "OS::Octavia::",
    "OS::Designate::",
    "OS::Manila::",
    "OS::Trove::",
    "OS::Magnum::",
    "OS::Sahara::",
    "OS::Ironic::",
    "OS::Blazar::",
    "OS::Aodh::",
    "OS::Ceilometer::",
    "OS::Monasca::",
    "OS::Keystone::",
    "OS::Barbican::",
    "OS::Heat::ScalingPolicy",
    "OS::Heat::AccessPolicy",
    "OS::Heat::HARestarter",
    "AWS::EC2::",
    "AWS::IAM::",
    "AWS::S3::",
    "AWS::RDS::",
    "AWS::ElasticLoadBalancing::",
    "AWS::AutoScaling::",
)
#: Prefixes of types that Stoker has.
_KEPT = (
    "OS::Heat::",
    "OS::Zaqar::",
    "AWS::CloudFormation::",
)
GROUP = "OS::Heat::ResourceGroup"
CHAIN = "OS::Heat::ResourceChain"
SCALING_GROUP = "OS::Heat::AutoScalingGroup"
#: Properties of OS::Nova::Server that OS::Heat::DeployedServer has too.
SERVER_PROPERTIES = ("name", "software_config_transport", "deployment_swift_data", "agent")
CONFIGS = ("OS::Heat::SoftwareConfig",)
DEPLOYMENTS = (
    "OS::Heat::SoftwareDeployment",
    "OS::Heat::SoftwareDeployments",
    "OS::Heat::SoftwareDeploymentGroup",
    "OS::Heat::StructuredDeployment",
    "OS::Heat::StructuredDeployments",
    "OS::Heat::StructuredDeploymentGroup",
)


class Kind(Enum):
    """What a migration does with a resource."""

    SERVER = auto()
    INFRASTRUCTURE = auto()
    GROUP = auto()
    NESTED = auto()
    KEPT = auto()
    UNKNOWN = auto()


def classify(type_name: str) -> Kind:
    """Return what a migration does with a resource of a built-in type."""
    if type_name in _SERVERS:
        return Kind.SERVER
    if type_name in (GROUP, SCALING_GROUP):
        return Kind.GROUP
    if type_name.startswith(_INFRASTRUCTURE):
        return Kind.INFRASTRUCTURE
    return Kind.KEPT if type_name.startswith(_KEPT) else Kind.UNKNOWN


def is_infrastructure(type_name: str) -> bool:
    """Return whether a migration replaces or drops all resources of a built-in type."""
    return classify(type_name) in (Kind.SERVER, Kind.INFRASTRUCTURE)
