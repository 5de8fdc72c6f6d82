"""OS::Heat::StructuredDeployment: a deployment whose config is data with ``{get_input: name}`` in it."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from stoker.deployments.derive import substitute
from stoker.model.errors import UserParameterMissing
from stoker.model.stack import Resource
from stoker.resources import deploying, running
from stoker.resources.base import Context, Outcome, Properties, ResourceFailure, ResourceType
from stoker.resources.properties import Property


def render(config: Any, values: Mapping[str, Any], properties: Properties) -> Any:
    strict = properties["input_values_validate"] == "STRICT"
    try:
        return substitute(config or {}, values, key=properties["input_key"], strict=strict)
    except UserParameterMissing as error:
        raise ResourceFailure(error.message) from None


def create(context: Context, resource: Resource, properties: Properties) -> Outcome:
    return deploying.create(context, resource, properties, render)


def update(context: Context, resource: Resource, properties: Properties) -> Outcome:
    return deploying.update(context, resource, properties, render)


def delete(context: Context, resource: Resource) -> Outcome:
    return deploying.delete(context, resource, render)


TYPE = ResourceType(
    name="OS::Heat::StructuredDeployment",
    properties={
        **deploying.PROPERTIES,
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
    check=deploying.check,
    attribute=deploying.attribute,
    validate=deploying.validate,
    signal=deploying.signal,
    cancel=deploying.cancel,
    actions=deploying.actions(render),
    adopt=deploying.adopt,
    exists=deploying.exists,
    retries=True,
    agents_transport="signal_transport",
    reached_by=running.reached_by,
    description="Runs a structured config on a server, with values put in place.",
)
