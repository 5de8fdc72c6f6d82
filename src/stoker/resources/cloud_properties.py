"""Short forms for the schemas of cloud types, and the translation of properties to a request's members."""

from __future__ import annotations

from typing import Any

from stoker.hot import UNKNOWN
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
