"""Parameters that the bodies of the identity API share."""

from __future__ import annotations

from typing import Any

from stoker.http import params as http_params
from stoker.http.request_context import RequestContext
from stoker.model.errors import Invalid


def read_body(request: RequestContext, noun: str) -> dict[str, Any]:
    """Return the object below the key ``noun`` of the body. Raises Invalid."""
    values = http_params.body(request).get(noun)
    if not isinstance(values, dict):
        raise Invalid(f"the body must be an object that contains an object {noun!r}")
    return values


def read_name(values: dict[str, Any]) -> str:
    """Return the member ``name``, which must not be empty. Raises Invalid."""
    name = http_params.text(values.get("name"), "name")
    if not name or not name.strip():
        raise Invalid("name is required and must not be empty")
    return name


def read_enabled(values: dict[str, Any]) -> bool:
    """Return the member ``enabled``; by default True. Raises Invalid."""
    enabled = values.get("enabled", True)
    if not isinstance(enabled, bool):
        raise Invalid("enabled must be true or false")
    return enabled
