"""Error responses: which errors a route can return, and their format."""

from __future__ import annotations

from collections.abc import Collection
from http import HTTPStatus
from typing import Annotated, Any

from msgspec import UNSET, Meta

from stoker.http.access import PUBLIC
from stoker.http.fields import Absent, Answer, Count
from stoker.http.openapi.types import TypeSchemas
from stoker.http.request_context import Route


class HeatErrorDetail(Answer):
    type: Annotated[str, Meta(description="The kind of error, as Heat names it")]
    traceback: None
    message: Annotated[str, Meta(description="What is wrong")] | Absent = UNSET


class HeatError(Answer):
    code: Count
    title: str
    explanation: str
    error: HeatErrorDetail


class ErrorResponses:
    """Gathers the error responses that the routes of a document refer to in ``components``."""

    def __init__(self, types: TypeSchemas) -> None:
        self._types = types
        self.components: dict[str, Any] = {}

    def of(self, route: Route, errors: Collection[int]) -> dict[str, Any]:
        """Return the error responses of a route by status. ``errors``: those that do not follow from the route."""
        statuses = {400, *errors}
        if route.access is not PUBLIC:
            statuses |= {401, 403}
        if "{" in route.path:
            statuses.add(404)
        return {str(status): self._refer(status) for status in (*sorted(statuses), 429, 503)}

    def _refer(self, status: int) -> dict[str, Any]:
        name = f"Heat{status}"
        if name not in self.components:
            self.components[name] = {
                "description": HTTPStatus(status).phrase,
                "content": {"application/json": {"schema": self._types.of(HeatError)}},
            }
        return {"$ref": f"#/components/responses/{name}"}
