"""OS::Heat::SoftwareDeployment: runs a config on a server and waits for its result."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from stoker.model.stack import Resource
from stoker.resources import deploying, running
from stoker.resources.base import Context, Outcome, Properties, ResourceType


def render(config: Any, _values: Mapping[str, Any], _properties: Properties) -> Any:
    return "" if config is None else config


def create(context: Context, resource: Resource, properties: Properties) -> Outcome:
    return deploying.create(context, resource, properties, render)


def update(context: Context, resource: Resource, properties: Properties) -> Outcome:
    return deploying.update(context, resource, properties, render)


def delete(context: Context, resource: Resource) -> Outcome:
    return deploying.delete(context, resource, render)


TYPE = ResourceType(
    name="OS::Heat::SoftwareDeployment",
    properties=deploying.PROPERTIES,
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
    description="Runs a software config on a server.",
)
