"""Deployments and their groups: each runs a config, as text or with values put in place, on one or more servers."""

from __future__ import annotations

from stoker.resources.deployment_base import deployment_type
from stoker.resources.deployment_group_base import group_of
from stoker.resources.properties import Property

SOFTWARE = deployment_type("OS::Heat::SoftwareDeployment", "Runs a software config on a server.")


STRUCTURED = deployment_type(
    "OS::Heat::StructuredDeployment",
    "Runs a structured config on a server, with values put in place.",
    {
        "input_key": Property(kind="string", default="get_input", description="Marks where a value goes."),
        "input_values_validate": Property(
            kind="string",
            default="LAX",
            allowed=("LAX", "STRICT"),
            description="STRICT: a missing value fails the deployment, instead of being null.",
        ),
    },
)


SOFTWARE_GROUP = group_of(
    SOFTWARE,
    "OS::Heat::SoftwareDeploymentGroup",
    "OS::Heat::SoftwareDeployments",
    "Runs a software config on several servers, all at once or in batches.",
)


STRUCTURED_GROUP = group_of(
    STRUCTURED,
    "OS::Heat::StructuredDeploymentGroup",
    "OS::Heat::StructuredDeployments",
    "Runs a structured config on several servers, all at once or in batches.",
)

TYPES = (SOFTWARE, STRUCTURED, SOFTWARE_GROUP, STRUCTURED_GROUP)
