"""Validates request parameters: Heat's flags, integers and bodies."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from stoker.http.request_context import RequestContext
from stoker.model.errors import Invalid
from stoker.model.server import LONGEST_ID

#: The maximum of a row number in the database.
LAST = 2**63 - 1


def body(request: RequestContext) -> dict[str, Any]:
    """Return the request's JSON object. Raises Invalid for any other value."""
    found = request.json()
    if not isinstance(found, dict):
        raise Invalid("the request's body must be a JSON object")
    return found


def optional_body(request: RequestContext) -> dict[str, Any]:
    """Like ``body``, but an empty body or null counts as an empty object."""
    return body(request) if request.body.strip() not in (b"", b"null") else {}


def flag(value: Any, name: str) -> bool | None:
    """Return the boolean that ``value`` is, or spells in any case; None stays None. Raises Invalid."""
    if value is None or isinstance(value, bool):
        return value
    word = str(value).lower()
    if word not in ("true", "false"):
        raise Invalid(f'Unrecognized value "{value}" for "{name}", acceptable values are: true, false')
    return word == "true"


def whole(value: Any, name: str, least: int = 0, most: int = 2**31 - 1) -> int | None:
    """Return the integer that ``value`` is, or spells, from ``least`` to ``most``; None stays None. Raises Invalid."""
    if value is None:
        return None
    # Python refuses to parse integers of more than 4,300 digits.
    if isinstance(value, bool) or not (isinstance(value, int) or (str(value).isdecimal() and len(value) <= 100)):
        raise Invalid(f"{name} must be a whole number, not {value!r:.100}")
    number = int(value)
    if number < least:
        raise Invalid(f"{name} must be at least {least}, not {number}")
    if number > most:
        raise Invalid(f"{name} must be at most {most}, not {number}")
    return number


def text(value: Any, name: str, longest: int = 255) -> str | None:
    """Return ``value``, a string of at most ``longest`` characters without NUL; None stays None. Raises Invalid."""
    if value is None:
        return None
    if not isinstance(value, str):
        raise Invalid(f"{name} must be a string, not {type(value).__name__}")
    if len(value) > longest or "\0" in value:
        raise Invalid(f"{name} must be at most {longest} characters, without NUL")
    return value


def server_id(value: Any) -> str | None:
    """Return ``value``; None stays None. Raises Invalid if it cannot be the id of a server."""
    return text(value, "server_id", LONGEST_ID)


def mapping(value: Any, name: str) -> dict[str, Any] | None:
    """Return ``value`` as a dictionary; None stays None. Raises Invalid if ``value`` is not a map."""
    if value is None:
        return None
    if not isinstance(value, Mapping):
        raise Invalid(f"{name} must be a map, not {type(value).__name__}")
    return dict(value)


def tags(value: Any) -> list[str] | None:
    """Split Heat's comma-separated string of tags; None stays None. Raises Invalid."""
    said = text(value, "tags", 4096)
    if said is None:
        return None
    found = [tag.strip() for tag in said.split(",") if tag.strip()]
    for tag in found:
        if len(tag) > 80:
            raise Invalid(f"Invalid tag, {tag!r} is longer than 80 characters")
    return found
