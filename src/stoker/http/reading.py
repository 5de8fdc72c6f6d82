"""What requests say, checked: Heat's flags, integers and bodies."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from stoker.http.call import Call
from stoker.model.errors import Invalid

#: What the database numbers its rows with ends here.
LAST = 2**63 - 1


def body(call: Call) -> dict[str, Any]:
    """The request's JSON object. Raises Invalid for anything else."""
    found = call.json()
    if not isinstance(found, dict):
        raise Invalid("the request's body must be a JSON object")
    return found


def optional_body(call: Call) -> dict[str, Any]:
    """The same; nothing, or null, is as good as an empty object."""
    return body(call) if call.body.strip() not in (b"", b"null") else {}


def flag(value: Any, name: str) -> bool | None:
    """True and false in any case, as text or as JSON; None stays None."""
    if value is None or isinstance(value, bool):
        return value
    word = str(value).lower()
    if word not in ("true", "false"):
        raise Invalid(f'Unrecognized value "{value}" for "{name}", acceptable values are: true, false')
    return word == "true"


def whole(value: Any, name: str, least: int = 0, most: int = 2**31 - 1) -> int | None:
    """A whole number from ``least`` to ``most``, as text or as JSON; None stays None."""
    if value is None:
        return None
    # Python reads no number of more than 4,300 digits.
    if isinstance(value, bool) or not (isinstance(value, int) or (str(value).isdecimal() and len(value) <= 100)):
        raise Invalid(f"{name} must be a whole number, not {value!r:.100}")
    number = int(value)
    if number < least:
        raise Invalid(f"{name} must be at least {least}, not {number}")
    if number > most:
        raise Invalid(f"{name} must be at most {most}, not {number}")
    return number


def text(value: Any, name: str, longest: int = 255) -> str | None:
    if value is None:
        return None
    if not isinstance(value, str):
        raise Invalid(f"{name} must be a string, not {type(value).__name__}")
    if len(value) > longest or "\0" in value:
        raise Invalid(f"{name} must be at most {longest} characters, without NUL")
    return value


def mapping(value: Any, name: str) -> dict[str, Any] | None:
    if value is None:
        return None
    if not isinstance(value, Mapping):
        raise Invalid(f"{name} must be a map, not {type(value).__name__}")
    return dict(value)


def tags(value: Any) -> list[str] | None:
    """Heat's comma string of tags."""
    said = text(value, "tags", 4096)
    if said is None:
        return None
    found = [tag.strip() for tag in said.split(",") if tag.strip()]
    for tag in found:
        if len(tag) > 80:
            raise Invalid(f"Invalid tag, {tag!r} is longer than 80 characters")
    return found
