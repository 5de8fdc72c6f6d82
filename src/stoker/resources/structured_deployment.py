"""
OS::Heat::StructuredDeployment: a deployment that replaces ``{get_input: name}`` in the config's data by input values.
"""

from __future__ import annotations

from stoker.resources.deployment_base import deployment_type
from stoker.resources.properties import Property

TYPE = deployment_type(
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
