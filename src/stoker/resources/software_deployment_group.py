"""OS::Heat::SoftwareDeploymentGroup: runs a config on every server of the group."""

from __future__ import annotations

from stoker.resources import software_deployment
from stoker.resources.deployment_group_base import group_of

TYPE = group_of(
    software_deployment.TYPE,
    "OS::Heat::SoftwareDeploymentGroup",
    "OS::Heat::SoftwareDeployments",
    "Runs a software config on several servers, all at once or in batches.",
)
