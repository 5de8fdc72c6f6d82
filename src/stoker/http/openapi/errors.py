"""Errors: which a row can give, and how each face puts them."""

from __future__ import annotations

from http import HTTPStatus
from typing import Any

from stoker.http.access import Public
from stoker.http.call import Route
from stoker.http.openapi.operations import Operation
from stoker.http.openapi.schemas import TEXT, WHOLE, Schema, record, told

SCHEMAS: dict[str, Schema] = {
    "HeatError": record(
        {
            "code": WHOLE,
            "title": TEXT,
            "explanation": TEXT,
            "error": record(
                {"type": told(TEXT, "The kind of error, as Heat names it"), "traceback": {"type": "null"}},
                message=told(TEXT, "What is wrong, and with what"),
            ),
        }
    ),
    "KeystoneError": record({"error": record({"code": WHOLE, "title": TEXT, "message": TEXT})}),
}


def of(route: Route, operation: Operation) -> dict[str, Any]:
    """The responses of a row that are errors, by status."""
    statuses = {400, *operation.errors}
    if not isinstance(route.access, Public):
        statuses |= {401, 403}
    if "{" in route.path:
        statuses.add(404)
    face = _face(route.path)
    found: dict[str, Any] = {str(each): {"$ref": f"#/components/responses/{face}{each}"} for each in sorted(statuses)}
    return {**found, "503": {"$ref": f"#/components/responses/{face}503"}}


def responses() -> dict[str, Any]:
    """The document's shared responses."""
    return {
        f"{face}{status}": {
            "description": HTTPStatus(status).phrase,
            "content": {"application/json": {"schema": {"$ref": f"#/components/schemas/{face}Error"}}},
        }
        for face in ("Heat", "Keystone")
        for status in (400, 401, 403, 404, 409, 503)
    }


def _face(path: str) -> str:
    return "Keystone" if path.startswith("/identity") else "Heat"
