"""Builds the OpenAPI document from routes and their descriptions."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from typing import Any

from stoker.http.access import Public
from stoker.http.openapi import errors, parameters
from stoker.http.openapi.operations import Answer, Noun, Operation
from stoker.http.openapi.schemas import ID, TEXT, merge
from stoker.http.request_context import Handler, Route
from stoker.version import VERSION

_NAMES = re.compile(r"{(\w+)}")


def document(rows: Iterable[Route], nouns: Iterable[Noun], public_url: str) -> dict[str, Any]:
    """Return the OpenAPI document of these routes. Raises LookupError if a route has no description."""
    nouns = list(nouns)
    paths: dict[str, dict[str, Any]] = {}
    for row in rows:
        noun, operation = describe_row(row, nouns)
        paths.setdefault(row.path, {})[row.verb.lower()] = _operation(row, noun, operation)
    for path, verbs in paths.items():
        if names := _NAMES.findall(path):
            verbs["parameters"] = [_in_path(name) for name in names]
    return {
        "openapi": "3.1.0",
        "info": {
            "title": "Stoker",
            "version": VERSION,
            "summary": "Software configuration for fleets of servers: Heat's API, and what of Keystone's it needs",
            "license": {"name": "Apache-2.0", "identifier": "Apache-2.0"},
        },
        "servers": [{"url": public_url}],
        "paths": dict(sorted(paths.items())),
        "components": {
            "securitySchemes": {"token": {"type": "apiKey", "in": "header", "name": "X-Auth-Token"}},
            "schemas": merge((errors.SCHEMAS, *(noun.schemas for noun in nouns))),
            "responses": errors.responses(),
        },
    }


def describe_row(row: Route, nouns: Iterable[Noun]) -> tuple[Noun, Operation]:
    """Return the noun and the operation that describe a route. Raises LookupError."""
    handler: Handler = row.handler
    for noun in nouns:
        if handler in noun.operations:
            return noun, noun.operations[handler]
    raise LookupError(f"nothing describes {row.verb} {row.path}")


def _operation(row: Route, noun: Noun, operation: Operation) -> dict[str, Any]:
    said: dict[str, Any] = {
        "tags": [noun.tag],
        "summary": operation.summary,
        "operationId": _id(row),
        "responses": {
            **{str(status): _answer(row, answer) for status, answer in operation.answers.items()},
            **errors.of(row, operation),
        },
    }
    if parameters := [*_in_query(operation), *_in_headers(operation)]:
        said["parameters"] = parameters
    if operation.body is not None and row.verb not in ("GET", "HEAD", "DELETE"):
        said["requestBody"] = _body(operation)
    if not isinstance(row.access, Public):
        said["security"] = [{"token": []}]
    return said


def _id(row: Route) -> str:
    """Return the operationId, which is unique for each route."""
    return f"{row.verb.lower()}_{re.sub(r'[^a-zA-Z0-9]+', '_', row.path).strip('_') or 'root'}"


def _in_path(name: str) -> dict[str, Any]:
    words, schema = parameters.PATH[name]
    return {"name": name, "in": "path", "required": True, "description": words, "schema": schema}


def _in_query(operation: Operation) -> list[dict[str, Any]]:
    found = []
    for name, schema in operation.query.items():
        words = schema.get("description", parameters.QUERY.get(name, ""))
        bare = {key: value for key, value in schema.items() if key != "description"}
        found.append({"name": name, "in": "query", "description": words, "schema": bare})
    return found


def _in_headers(operation: Operation) -> list[dict[str, Any]]:
    return [{"name": name, "in": "header", "required": True, "schema": ID} for name in operation.headers]


def _body(operation: Operation) -> dict[str, Any]:
    content: dict[str, Any] = {"schema": operation.body}
    if operation.example is not None:
        content["examples"] = {"good": {"value": operation.example}}
    return {"required": operation.body_needed, "content": {"application/json": content}}


def _answer(row: Route, answer: Answer) -> Mapping[str, Any]:
    said: dict[str, Any] = {"description": _WORDS.get(answer.schema is None, "")}
    if answer.schema is not None and row.verb != "HEAD":
        said["content"] = {answer.media_type: {"schema": answer.schema}}
    if answer.headers:
        said["headers"] = {name: {"required": True, "schema": TEXT} for name in answer.headers}
    return said


_WORDS = {True: "Done", False: "What was asked for"}
