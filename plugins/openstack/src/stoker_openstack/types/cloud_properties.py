"""
The schemas of cloud types, the translation of properties to a request's members, and checks that several types make.

A ``Member`` states under which key a property becomes a member of the request that creates or changes the object.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from stoker.hot import UNKNOWN
from stoker.model.errors import StackValidationFailed
from stoker.resources.base import LONGEST_NAME, Properties, ResourceFailure
from stoker.resources.properties import Kind, Property
from stoker_openstack.model import OWN_PREFIX


class Member(Property, frozen=True, kw_only=True):
    """A property that becomes a member of a request. ``key``: empty for the property's own name; None: no member."""

    key: str | None = ""


def _schema_of(kind: Kind) -> Callable[..., Property]:
    """Return the function that makes the schemas of a kind, of a description and other members of ``Member``."""

    def create(description: str, **options: Any) -> Property:
        return Member(kind=kind, description=description, **options)

    return create


text, flag, integer, mapping = (_schema_of("string"), _schema_of("boolean"), _schema_of("integer"), _schema_of("map"))


def object_name(description: str = "Name; by default stack, resource and a short id.", **options: Any) -> Property:
    """Return the schema of the name of an object. No service has longer ones."""
    return text(description, longest=LONGEST_NAME, **options)


def reference(name: str, description: str, former: str = "", **options: Any) -> dict[str, Property]:
    """
    Return the schemas of a property that names an object, and of its former name, which is the key of the member. The
    default is the name with ``_id``.
    """
    former = former or f"{name}_id"
    return {
        name: text(description, **{"key": former, **options}),
        former: text("The same; deprecated.", **options),
    }


def texts(description: str, **options: Any) -> Property:
    """Return the schema of a list of strings."""
    return Member(kind="list", each=Property(kind="string"), description=description, **options)


def maps(description: str, schema: Mapping[str, Property], **options: Any) -> Property:
    """Return the schema of a list of maps."""
    return Member(kind="list", each=Property(kind="map", schema=schema), description=description, **options)


#: Properties that several types of Neutron have.
NAME = object_name(update_allowed=True)
ADMIN_STATE_UP = flag("Whether the object is in use.", default=True, update_allowed=True)
TAGS = texts("Tags of the object.", update_allowed=True)
TENANT_ID = text("Project that owns the object, for administrators only.")
QOS_POLICY = text("Name or id of the QoS policy.", key="qos_policy_id", update_allowed=True)
PORT_SECURITY = flag("Whether security groups and address checks apply.", update_allowed=True)
VALUE_SPECS = mapping(
    "Other members of the request, for extensions of Neutron.", key=None, default={}, update_allowed=True
)


def shown(properties: Mapping[str, Property], *names: str) -> dict[str, str]:
    """Return the attributes that show properties of the same names, with their descriptions."""
    return {name: properties[name].description for name in names}


def members(schema: Mapping[str, Property], values: Properties) -> dict[str, Any]:
    """
    Return the request's members: the values that are set, also in maps and lists of maps, under their keys.

    If several properties have one key, the first one in the schema counts.
    """
    result: dict[str, Any] = {}
    for name, member in schema.items():
        if isinstance(member, Member) and member.key is not None and values.get(name) is not None:
            result.setdefault(member.key or name, _translate(member, values[name]))
    return result


def value_specs(properties: Properties) -> Mapping[str, Any]:
    """Return the entries of ``value_specs``. Raises ResourceFailure for Stoker's own keys."""
    specs: Mapping[str, Any] = properties.get("value_specs") or {}
    own = sorted(str(name) for name in specs if str(name).startswith(OWN_PREFIX))
    if own:
        raise ResourceFailure(f"value_specs: the key {own[0]} is reserved")
    return specs


def _translate(member: Property, value: Any) -> Any:
    if member.schema is not None:
        return members(member.schema, value)
    if member.each is not None and member.each.schema is not None:
        return [members(member.each.schema, item) for item in value]
    return value


def is_known(*values: Any) -> bool:
    """Return whether no value is unknown."""
    return all(value is not UNKNOWN for value in values)


def require(properties: Properties, name: str) -> None:
    """Raise StackValidationFailed unless the property is set, by its present name or by the former one with ``_id``."""
    if properties[name] is None and properties[f"{name}_id"] is None:
        raise StackValidationFailed(f"Property {name} not assigned")


def refuse_several(values: Mapping[str, Any]) -> None:
    """Raise StackValidationFailed, with Heat's text, if several of the properties are set, as far as they are known."""
    names = [name for name, value in values.items() if value is not None]
    if len(names) > 1 and is_known(*(values[name] for name in names)):
        raise StackValidationFailed(f"Cannot define the following properties at the same time: {', '.join(names)}.")


def check_form(path: str, value: Any, parse: Callable[[Any], Any], problem: str) -> None:
    """
    Check a property, which ``path`` names in errors, unless its value is unknown.

    Raises StackValidationFailed, with Heat's text, if ``parse`` raises ValueError.
    """
    if value is UNKNOWN:
        return
    try:
        parse(value)
    except ValueError as error:
        raise StackValidationFailed(f"{path}: Error validating value '{value}': {problem}: {error}") from None
