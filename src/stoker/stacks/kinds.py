"""What types are, to those who look for deployments in a stack: names of types, without their other names."""

from __future__ import annotations

DEPLOYMENTS = frozenset(("OS::Heat::SoftwareDeployment", "OS::Heat::StructuredDeployment"))
GROUPS = frozenset(("OS::Heat::SoftwareDeploymentGroup", "OS::Heat::StructuredDeploymentGroup"))
CONFIGS = frozenset(("OS::Heat::SoftwareConfig", "OS::Heat::StructuredConfig"))
COMPONENTS = frozenset(("OS::Heat::SoftwareComponent",))
SERVERS = frozenset(("OS::Heat::DeployedServer", "OS::Nova::Server"))
