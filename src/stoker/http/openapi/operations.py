"""What a route does, as its noun's module tells it; verb, path, access and errors are known from its row."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from stoker.http.call import Handler
from stoker.http.openapi.schemas import Schema


@dataclass(frozen=True, slots=True)
class Answer:
    """``schema`` None: no body. ``headers`` are always there."""

    schema: Schema | None = None
    headers: tuple[str, ...] = ()
    media_type: str = "application/json"


@dataclass(frozen=True, slots=True, kw_only=True)
class Operation:
    summary: str
    #: By status, those of success.
    answers: Mapping[int, Answer]
    query: Mapping[str, Schema] = field(default_factory=dict)
    #: Headers it needs besides the token.
    headers: tuple[str, ...] = ()
    body: Schema | None = None
    #: A whole good request to begin with.
    example: object = None
    body_needed: bool = True
    #: Errors besides those that follow from the row: 409 where the state of things may forbid it.
    errors: tuple[int, ...] = ()


@dataclass(frozen=True, slots=True)
class Noun:
    """One module's share of the document."""

    tag: str
    operations: Mapping[Handler, Operation]
    schemas: Mapping[str, Schema] = field(default_factory=dict)


def ok(schema: Schema, status: int = 200, *headers: str) -> dict[int, Answer]:
    return {status: Answer(schema, headers)}


def empty(status: int = 204) -> dict[int, Answer]:
    return {status: Answer()}
