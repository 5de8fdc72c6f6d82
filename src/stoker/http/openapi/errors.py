"""Error responses: which errors a route can return, and their format in each API."""

from __future__ import annotations

from collections.abc import Collection
from http import HTTPStatus
from typing import Annotated, Any, NamedTuple

from msgspec import UNSET, Meta

from stoker.http.access import Public
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


class KeystoneErrorDetail(Answer):
    code: Count
    title: str
    message: str


class KeystoneError(Answer):
    error: KeystoneErrorDetail


class ZaqarError(Answer):
    title: str
    description: str


class _Format(NamedTuple):
    """The format of an API's errors."""

    name: str
    kind: Any
    media_types: tuple[str, ...] = ("application/json",)


_HEAT = _Format("Heat", HeatError)
_FORMATS = {
    "identity": _Format("Keystone", KeystoneError),
    "messaging": _Format("Zaqar", ZaqarError),
    "cfn": _Format("CloudFormation", Any, ("application/xml", "application/json")),
    "object-store": _Format("Swift", str, ("text/plain", "text/html")),
}


class ErrorResponses:
    """Gathers the error responses that the routes of a document refer to in ``components``."""

    def __init__(self, types: TypeSchemas) -> None:
        self._types = types
        self.components: dict[str, Any] = {}

    def of(self, route: Route, errors: Collection[int]) -> dict[str, Any]:
        """Return the error responses of a route by status. ``errors``: those that do not follow from the route."""
        statuses = {400, *errors}
        if not isinstance(route.access, Public):
            statuses |= {401, 403}
        if "{" in route.path:
            statuses.add(404)
        return {str(status): self._refer(route.path, status) for status in (*sorted(statuses), 429, 503)}

    def _refer(self, path: str, status: int) -> dict[str, Any]:
        format_ = _FORMATS.get(path.split("/")[1], _HEAT)
        name = f"{format_.name}{status}"
        if name not in self.components:
            schema = {"schema": self._types.of(format_.kind)}
            self.components[name] = {
                "description": HTTPStatus(status).phrase,
                "content": dict.fromkeys(format_.media_types, schema),
            }
        return {"$ref": f"#/components/responses/{name}"}
