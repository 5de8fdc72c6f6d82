"""Short forms for the schemas of cloud types, and the translation of properties to a request's members."""

from __future__ import annotations

import ipaddress
from collections.abc import Callable
from typing import Any

from stoker.hot import UNKNOWN
from stoker.model.errors import StackValidationFailed
from stoker.resources.base import Properties
from stoker.resources.properties import Property


def text(description: str, **options: Any) -> Property:
    """Return the schema of a string property."""
    return Property(kind="string", description=description, **options)


def flag(description: str, **options: Any) -> Property:
    """Return the schema of a boolean property."""
    return Property(kind="boolean", description=description, **options)


def texts(description: str, **options: Any) -> Property:
    """Return the schema of a list of strings."""
    return Property(kind="list", each=Property(kind="string"), description=description, **options)


def body(properties: Properties, **keys: str) -> dict[str, Any]:
    """Return the request's members: for each property that is set, its key and value. ``keys`` maps properties."""
    return {key: properties[name] for name, key in keys.items() if properties.get(name) is not None}


def is_known(*values: Any) -> bool:
    """Return whether no value is unknown."""
    return all(value is not UNKNOWN for value in values)


def check_address(path: str, value: Any) -> None:
    """
    Check a property, unless its value is unknown. ``path`` names it in errors.

    Raises StackValidationFailed, with Heat's text, if the value is no IP address.
    """
    _check(path, value, ipaddress.ip_address, "Invalid IP address")


def check_network(path: str, value: Any) -> None:
    """Do the same as ``check_address`` for a network in CIDR notation."""
    _check(path, value, ipaddress.ip_network, "Invalid net cidr")


def _check(path: str, value: Any, parse: Callable[[Any], Any], problem: str) -> None:
    if value is UNKNOWN:
        return
    try:
        parse(value)
    except ValueError as error:
        raise StackValidationFailed(f"{path}: Error validating value '{value}': {problem}: {error}") from None
