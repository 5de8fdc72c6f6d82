"""Deployments and their groups: each runs a config, as text or with values put in place, on one or more servers."""

from __future__ import annotations

from stoker.resources.properties import Property
from stoker.types.deployment_base import PROPERTIES, DeploymentType
from stoker.types.deployment_group_base import DeploymentGroupType, group_properties


class SoftwareDeployment(DeploymentType):
    name = "OS::Heat::SoftwareDeployment"
    description = "Runs a software config on a server."


class StructuredDeployment(DeploymentType):
    name = "OS::Heat::StructuredDeployment"
    description = "Runs a structured config on a server, with values put in place."
    properties = {
        **PROPERTIES,
        "input_key": Property(kind="string", default="get_input", description="Marks where a value goes."),
        "input_values_validate": Property(
            kind="string",
            default="LAX",
            allowed=("LAX", "STRICT"),
            description="STRICT: a missing value fails the deployment, instead of being null.",
        ),
    }


class SoftwareDeploymentGroup(DeploymentGroupType):
    name = "OS::Heat::SoftwareDeploymentGroup"
    aliases = ("OS::Heat::SoftwareDeployments",)
    description = "Runs a software config on several servers, all at once or in batches."
    one = SoftwareDeployment
    properties = group_properties(SoftwareDeployment)


class StructuredDeploymentGroup(DeploymentGroupType):
    name = "OS::Heat::StructuredDeploymentGroup"
    aliases = ("OS::Heat::StructuredDeployments",)
    description = "Runs a structured config on several servers, all at once or in batches."
    one = StructuredDeployment
    properties = group_properties(StructuredDeployment)
