"""
OS::Heat::StructuredDeployment: a deployment that replaces ``{get_input: name}`` in the config's data by input values.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from stoker.deployments.derive import substitute
from stoker.model.errors import UserParameterMissing
from stoker.model.stack import Resource
from stoker.resources import deployment_base, deployment_runs
from stoker.resources.base import Context, Outcome, Properties, ResourceFailure, ResourceType
from stoker.resources.properties import Property


def render(config: Any, values: Mapping[str, Any], properties: Properties) -> Any:
    """
    Return the content with the input values inserted. Raises ResourceFailure for a missing value in the mode STRICT.
    """
    strict = properties["input_values_validate"] == "STRICT"
    try:
        return substitute(config or {}, values, key=properties["input_key"], strict=strict)
    except UserParameterMissing as error:
        raise ResourceFailure(error.message) from None


def create(context: Context, resource: Resource, properties: Properties) -> Outcome:
    return deployment_base.create(context, resource, properties, render)


def update(context: Context, resource: Resource, properties: Properties) -> Outcome:
    return deployment_base.update(context, resource, properties, render)


def delete(context: Context, resource: Resource) -> Outcome:
    return deployment_base.delete(context, resource, render)


TYPE = ResourceType(
    name="OS::Heat::StructuredDeployment",
    properties={
        **deployment_base.PROPERTIES,
        "input_key": Property(kind="string", default="get_input", description="Marks where a value goes."),
        "input_values_validate": Property(
            kind="string",
            default="LAX",
            allowed=("LAX", "STRICT"),
            description="STRICT: a value nobody gave fails the deployment, instead of being null.",
        ),
    },
    attributes=None,
    create=create,
    update=update,
    delete=delete,
    check=deployment_base.check,
    attribute=deployment_base.attribute,
    show=deployment_base.show,
    validate=deployment_base.validate,
    signal=deployment_base.signal,
    cancel=deployment_base.cancel,
    retain=deployment_runs.close,
    actions=deployment_base.actions(render),
    adopt=deployment_base.adopt,
    exists=deployment_base.exists,
    retries=True,
    agents_transport="signal_transport",
    reached_by=deployment_runs.reached_by,
    description="Runs a structured config on a server, with values put in place.",
)
