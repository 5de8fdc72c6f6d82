"""OS::Heat::None: a placeholder for a resource that the site does not provide."""

from __future__ import annotations

from stoker.model.stack import Resource
from stoker.resources.base import Context, Outcome, Properties, ResourceType


def create(_: Context, resource: Resource, __: Properties) -> Outcome:
    return Outcome(physical_id=resource.physical_id or resource.id)


def attribute(_: Context, __: Resource, ___: str) -> None:
    return None


TYPE = ResourceType(
    name="OS::Heat::None",
    properties=None,
    attributes=None,
    create=create,
    update=create,
    attribute=attribute,
    description="Does nothing, whatever its properties.",
)
