"""OS::Heat::None: a placeholder for a resource that the site does not provide."""

from __future__ import annotations

from stoker.model.stack import Resource
from stoker.resources.base import Context, Outcome, Properties, ResourceType


class Nothing(ResourceType):
    name = "OS::Heat::None"
    description = "Does nothing, whatever its properties."
    properties = None
    attributes = None

    def create(self, context: Context, resource: Resource, properties: Properties) -> Outcome:
        return Outcome(physical_id=resource.physical_id or resource.id)

    def update(self, context: Context, resource: Resource, properties: Properties) -> Outcome:
        return self.create(context, resource, properties)

    def attribute(self, context: Context, resource: Resource, name: str) -> None:
        return None
