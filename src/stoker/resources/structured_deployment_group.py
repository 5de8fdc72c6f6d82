"""OS::Heat::StructuredDeploymentGroup: runs a structured config on every server of the group."""

from __future__ import annotations

from stoker.resources import structured_deployment
from stoker.resources.deployment_group_base import group_of

TYPE = group_of(
    structured_deployment.TYPE,
    "OS::Heat::StructuredDeploymentGroup",
    "OS::Heat::StructuredDeployments",
    "Runs a structured config on several servers, all at once or in batches.",
)
