"""Types that describe a route. Method, path, access rule and errors are derived from the route itself."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from stoker.http.openapi.schemas import Schema
from stoker.http.request_context import Handler


@dataclass(frozen=True, slots=True)
class Answer:
    """A successful response. ``schema`` None: no body. ``headers`` are always present."""

    schema: Schema | None = None
    headers: tuple[str, ...] = ()
    media_type: str = "application/json"


@dataclass(frozen=True, slots=True, kw_only=True)
class Operation:
    """The description of one route."""

    summary: str
    #: Successful responses by status.
    answers: Mapping[int, Answer]
    query: Mapping[str, Schema] = field(default_factory=dict)
    #: Required headers besides the token.
    headers: tuple[str, ...] = ()
    body: Schema | None = None
    #: A complete valid request body.
    example: object = None
    body_needed: bool = True
    #: Errors besides those that follow from the route: 409, for example, if the current state may forbid the request.
    errors: tuple[int, ...] = ()


@dataclass(frozen=True, slots=True)
class Noun:
    """The part of the document that one module describes."""

    tag: str
    operations: Mapping[Handler, Operation]
    schemas: Mapping[str, Schema] = field(default_factory=dict)


def ok(schema: Schema, status: int = 200, *headers: str) -> dict[int, Answer]:
    """Return a successful response with a body and the given headers."""
    return {status: Answer(schema, headers)}


def empty(status: int = 204) -> dict[int, Answer]:
    """Return a successful response without a body."""
    return {status: Answer()}
