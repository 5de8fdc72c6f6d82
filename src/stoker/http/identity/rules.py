"""Who may do what with identities: an administrator of any project everything, everybody else what is their own."""

from __future__ import annotations

from typing import Any

from stoker.http import reading
from stoker.http.call import Call
from stoker.model.errors import Forbidden, Invalid

_NOT_ALLOWED = "You are not authorized to perform the requested action."


def is_admin(call: Call) -> bool:
    return "admin" in call.user.roles


def require_admin(call: Call) -> None:
    if not is_admin(call) or call.user.restricted:
        raise Forbidden(_NOT_ALLOWED)


def require_self(call: Call, user_id: str) -> None:
    """The user, or an administrator."""
    if user_id != call.user.user_id and not is_admin(call):
        raise Forbidden(_NOT_ALLOWED)


def body(call: Call, noun: str) -> dict[str, Any]:
    """What stands under the noun. Raises Invalid."""
    said = reading.body(call).get(noun)
    if not isinstance(said, dict):
        raise Invalid(f"the body must be an object with an object {noun!r} in it")
    return said


def name(said: dict[str, Any]) -> str:
    found = reading.text(said.get("name"), "name")
    if not found or not found.strip():
        raise Invalid("name is needed, and must not be empty")
    return found


def enabled(said: dict[str, Any]) -> bool:
    found = said.get("enabled", True)
    if not isinstance(found, bool):
        raise Invalid("enabled must be true or false")
    return found
