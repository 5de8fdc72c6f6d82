"""
Resource types: which ones of clouds a migration replaces, drops or keeps, and what a name means with the
``resource_registry`` of environments.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from enum import Enum, auto
from typing import Any

from stoker_client.templates import locations
from stoker_client.templates.bundle import NESTED, NOT_FILES

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


NOTHING = "OS::Heat::None"


class TypeRegistry:
    """The mappings of types in several environments; later ones take precedence."""

    def __init__(self, environments: Iterable[tuple[str, Mapping[str, Any]]]) -> None:
        """``environments``: the URL and the data of each."""
        self._targets: dict[str, str] = {}
        for url, data in environments:
            registry = data.get("resource_registry") or {}
            base_url = registry.get("base_url")
            base = locations.folder(base_url, url) if isinstance(base_url, str) else url
            for name, target in registry.items():
                if name not in NOT_FILES and isinstance(target, str):
                    self._targets[name] = target if "::" in target else locations.locate(target, base)

    def resolve(self, type_name: str, base: str) -> str:
        """Return the built-in type, or the URL of the template, that ``type_name`` means in the document ``base``."""
        seen = set()
        while type_name not in seen:
            seen.add(type_name)
            type_name = self._targets.get(type_name) or self._match(type_name) or type_name
        if "::" not in type_name and type_name.endswith(NESTED):
            return locations.locate(type_name, base)
        return type_name

    def _match(self, type_name: str) -> str | None:
        """Return the target of the longest pattern, such as ``OS::Neutron::*``."""
        patterns = [name for name in self._targets if name.endswith("*") and type_name.startswith(name[:-1])]
        target = self._targets[max(patterns, key=len)] if patterns else None
        if target is not None and target.endswith("*"):
            return target[:-1] + type_name[len(max(patterns, key=len)) - 1 :]
        return target


def is_template(resolved: str) -> bool:
    """Return whether a resolved type is a template."""
    return "://" in resolved and not locations.is_catalog(resolved)
