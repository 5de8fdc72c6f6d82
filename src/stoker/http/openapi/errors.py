"""Error responses: which errors a route can return, and their format in each API."""

from __future__ import annotations

from collections.abc import Collection
from http import HTTPStatus
from typing import Any

from stoker.http.access import Public
from stoker.http.openapi.schemas import TEXT, WHOLE, Schema, record, with_description
from stoker.http.request_context import Route

SCHEMAS: dict[str, Schema] = {
    "HeatError": record(
        {
            "code": WHOLE,
            "title": TEXT,
            "explanation": TEXT,
            "error": record(
                {"type": with_description(TEXT, "The kind of error, as Heat names it"), "traceback": {"type": "null"}},
                message=with_description(TEXT, "What is wrong, and with what"),
            ),
        }
    ),
    "KeystoneError": record({"error": record({"code": WHOLE, "title": TEXT, "message": TEXT})}),
}


def of(route: Route, errors: Collection[int]) -> dict[str, Any]:
    """Return the error responses of a route by status. ``errors``: those that do not follow from the route."""
    statuses = {400, *errors}
    if not isinstance(route.access, Public):
        statuses |= {401, 403}
    if "{" in route.path:
        statuses.add(404)
    api = _api(route.path)
    return {str(status): {"$ref": f"#/components/responses/{api}{status}"} for status in (*sorted(statuses), 429, 503)}


def responses() -> dict[str, Any]:
    """Return the shared responses of the document."""
    return {
        f"{api}{status}": {
            "description": HTTPStatus(status).phrase,
            "content": {"application/json": {"schema": {"$ref": f"#/components/schemas/{api}Error"}}},
        }
        for api in ("Heat", "Keystone")
        for status in (400, 401, 403, 404, 409, 429, 503)
    }


def _api(path: str) -> str:
    return "Keystone" if path.startswith("/identity") else "Heat"
