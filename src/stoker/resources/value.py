"""OS::Heat::Value: gives a name to a value."""

from __future__ import annotations

import json
from typing import Any

from stoker.hot import UNKNOWN
from stoker.model.errors import StackValidationFailed
from stoker.model.stack import Resource
from stoker.resources.base import Context, NoSuchAttribute, Outcome, Properties, ResourceFailure, ResourceType
from stoker.resources.properties import Property, PropertyError, fit

_KINDS = {
    "string": Property(kind="string"),
    "number": Property(kind="number"),
    "boolean": Property(kind="boolean"),
}


def keep(_: Context, resource: Resource, properties: Properties) -> Outcome:
    try:
        value = typed(properties["type"], properties["value"])
    except PropertyError as error:
        raise ResourceFailure(f"value: {error.problem}") from None
    return Outcome(physical_id=resource.physical_id or resource.id, data={"value": value})


def typed(kind: str | None, value: Any) -> Any:
    """Raises PropertyError when the value is not of that type."""
    if kind is None or value is UNKNOWN:
        return value
    if kind in _KINDS:
        return fit(_KINDS[kind], value, ("value",))
    if kind == "comma_delimited_list":
        return _comma_delimited(value)
    return _json(value)


def _comma_delimited(value: Any) -> list[str]:
    if isinstance(value, list):
        return [str(item) for item in value]
    if isinstance(value, str):
        return value.split(",") if value else []
    raise PropertyError(("value",), "Value must be a list or a text with commas")


def _json(value: Any) -> Any:
    if not isinstance(value, str):
        return value
    try:
        return json.loads(value)
    except ValueError:
        raise PropertyError(("value",), "Value must be JSON text, a map or a list") from None


def validate(properties: Properties) -> None:
    try:
        typed(properties["type"], properties["value"])
    except PropertyError as error:
        raise StackValidationFailed(f"value: {error.problem}") from None


def attribute(_: Context, resource: Resource, name: str) -> Any:
    if name != "value":
        raise NoSuchAttribute(name)
    return resource.data.get("value")


TYPE = ResourceType(
    name="OS::Heat::Value",
    properties={
        "value": Property(kind="any", required=True, update_allowed=True, description="The value."),
        "type": Property(
            kind="string",
            update_allowed=True,
            allowed=("string", "number", "comma_delimited_list", "json", "boolean"),
            description="What the value is to be.",
        ),
    },
    attributes={"value": "The value."},
    create=keep,
    update=keep,
    attribute=attribute,
    validate=validate,
    description="Exposes a value as an attribute.",
)
