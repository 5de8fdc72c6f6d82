"""Names of resource types, for code that looks for deployments in a stack. Aliases are not included."""

from __future__ import annotations

DEPLOYMENTS = frozenset(("OS::Heat::SoftwareDeployment", "OS::Heat::StructuredDeployment"))
GROUPS = frozenset(("OS::Heat::SoftwareDeploymentGroup", "OS::Heat::StructuredDeploymentGroup"))
CONFIGS = frozenset(("OS::Heat::SoftwareConfig", "OS::Heat::StructuredConfig"))
COMPONENTS = frozenset(("OS::Heat::SoftwareComponent",))
SERVERS = frozenset(("OS::Heat::DeployedServer", "OS::Nova::Server"))
