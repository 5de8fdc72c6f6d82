"""OS::Heat::SoftwareDeployment: runs a config on a server and waits for the result."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from stoker.model.stack import Resource
from stoker.resources import deployment_base, deployment_runs
from stoker.resources.base import Context, Outcome, Properties, ResourceType


def render(config: Any, _values: Mapping[str, Any], _properties: Properties) -> Any:
    """Return the content unchanged: a hook receives the inputs separately."""
    return "" if config is None else config


def create(context: Context, resource: Resource, properties: Properties) -> Outcome:
    return deployment_base.create(context, resource, properties, render)


def update(context: Context, resource: Resource, properties: Properties) -> Outcome:
    return deployment_base.update(context, resource, properties, render)


def delete(context: Context, resource: Resource) -> Outcome:
    return deployment_base.delete(context, resource, render)


TYPE = ResourceType(
    name="OS::Heat::SoftwareDeployment",
    properties=deployment_base.PROPERTIES,
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
    description="Runs a software config on a server.",
)
