"""OS::Heat::Value: makes a value available as an attribute."""

from __future__ import annotations

from typing import Any

from stoker.hot import weigh
from stoker.hot.parameters.values import convert
from stoker.hot.words import clip
from stoker.model.errors import StackValidationFailed
from stoker.model.stack import Resource
from stoker.resources.base import (
    Context,
    NoSuchAttribute,
    Outcome,
    Properties,
    ResourceFailure,
    ResourceType,
    physical_name,
)
from stoker.resources.properties import Property


def convert_value(kind: Any, value: Any) -> Any:
    """Convert ``value`` as a parameter of this type. Raises ValueError if the value does not match the type."""
    if not isinstance(kind, str) or weigh(value)[1]:
        return value
    return convert(kind, value)


class Value(ResourceType):
    name = "OS::Heat::Value"
    description = "Exposes a value as an attribute."
    properties = {
        "value": Property(kind="any", required=True, update_allowed=True, description="The value."),
        "type": Property(
            kind="string",
            update_allowed=True,
            allowed=("string", "number", "comma_delimited_list", "json", "boolean"),
            description="What the value is to be.",
        ),
    }
    attributes = {"value": "The value."}

    def create(self, context: Context, resource: Resource, properties: Properties) -> Outcome:
        try:
            value = convert_value(properties["type"], properties["value"])
        except ValueError as error:
            raise ResourceFailure(f"value: {clip(str(error))}") from None
        return Outcome(physical_id=resource.physical_id or physical_name(context, resource), data={"value": value})

    def update(self, context: Context, resource: Resource, properties: Properties) -> Outcome:
        return self.create(context, resource, properties)

    def attribute(self, context: Context, resource: Resource, name: str) -> Any:
        if name != "value":
            raise NoSuchAttribute(name)
        return resource.data.get("value")

    def validate(self, properties: Properties) -> None:
        try:
            convert_value(properties["type"], properties["value"])
        except ValueError as error:
            raise StackValidationFailed(f"value: {clip(str(error))}") from None
