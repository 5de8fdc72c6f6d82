"""Builds the OpenAPI document from routes and the contracts of their handlers."""

from __future__ import annotations

import inspect
import re
from collections.abc import Iterable, Mapping
from http import HTTPStatus
from typing import Any

from stoker.http.access import Public
from stoker.http.contracts import Contract, Success, contract_of
from stoker.http.openapi import errors, parameters
from stoker.http.openapi.operations import Answer, Noun, Operation
from stoker.http.openapi.schemas import ID, TEXT, merge
from stoker.http.openapi.types import TypeSchemas
from stoker.http.request_context import Handler, Route
from stoker.version import VERSION

_NAMES = re.compile(r"{(\w+)\*?}")


def document(rows: Iterable[Route], nouns: Iterable[Noun], public_url: str) -> dict[str, Any]:
    """Return the OpenAPI document of these routes. Raises LookupError if the handler of a route has no contract."""
    nouns = list(nouns)
    types = TypeSchemas()
    paths: dict[str, dict[str, Any]] = {}
    for row in rows:
        contract = contract_of(row.handler)
        described = _described(row, *describe_row(row, nouns)) if contract is None else _typed(row, contract, types)
        paths.setdefault(row.path, {})[row.verb.lower()] = described
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
            "schemas": merge((errors.SCHEMAS, types.components, *(noun.schemas for noun in nouns))),
            "responses": errors.responses(),
        },
    }


def describe_row(row: Route, nouns: Iterable[Noun]) -> tuple[Noun, Operation]:
    """Return the noun and the operation that describe a route. Raises LookupError."""
    handler: Handler = row.handler
    for noun in nouns:
        if handler in noun.operations:
            return noun, noun.operations[handler]
    raise LookupError(f"the handler of {row.verb} {row.path} has no contract")


def _typed(row: Route, contract: Contract, types: TypeSchemas) -> dict[str, Any]:
    """Return the description of a route whose handler has a contract."""
    summary, description = _prose(row)
    operation: dict[str, Any] = {
        "tags": [_tag(row.handler)],
        "summary": summary,
        "operationId": _id(row),
        "responses": {
            **{str(status): _response(row, answer, types, status) for status, answer in contract.answers.items()},
            **errors.of(row, contract.errors),
        },
    }
    if description:
        operation["description"] = description
    query = types.of_query(contract.query.kind) if contract.query is not None else {}
    if items := [*map(_parameter, query.items()), *map(_header, contract.headers)]:
        operation["parameters"] = items
    if contract.body is not None:
        content: dict[str, Any] = {"schema": types.of(contract.body.kind)}
        if contract.example is not None:
            content["examples"] = {"good": {"value": contract.example}}
        operation["requestBody"] = {
            "required": not contract.body.is_optional,
            "content": {"application/json": content},
        }
    if not isinstance(row.access, Public):
        operation["security"] = [{"token": []}]
    return operation


def _prose(row: Route) -> tuple[str, str]:
    """
    Return the summary and the description of a route: the first sentence of the handler's docstring, and the others.

    The names of errors are left out, because the document lists their statuses. Raises LookupError.
    """
    docstring = " ".join((inspect.getdoc(row.handler) or "").split()).replace("``", "`")
    if not docstring:
        raise LookupError(f"the handler of {row.verb} {row.path} has no docstring")
    first, *others = re.split(r"(?<=[.:]) (?=[A-Z`])", docstring)
    return first.rstrip(".:"), " ".join(sentence for sentence in others if not sentence.startswith("Raises "))


def _tag(handler: Handler) -> str:
    """Return the API and the noun of a handler: the names of its package and its module."""
    *_, package, module = handler.__module__.split(".")
    return f"{package}: {module.replace('_', ' ')}"


def _response(row: Route, answer: Success, types: TypeSchemas, status: int) -> Mapping[str, Any]:
    response: dict[str, Any] = {"description": HTTPStatus(status).phrase}
    if answer.body is not None and row.verb != "HEAD":
        response["content"] = {answer.media_type: {"schema": types.of(answer.body)}}
    if answer.headers:
        response["headers"] = {name: {"required": True, "schema": TEXT} for name in answer.headers}
    return response


def _parameter(named: tuple[str, Mapping[str, Any]]) -> dict[str, Any]:
    name, schema = named
    words = schema.get("description", parameters.QUERY.get(name, ""))
    bare = {key: value for key, value in schema.items() if key != "description"}
    return {"name": name, "in": "query", "description": words, "schema": bare}


def _header(name: str) -> dict[str, Any]:
    return {"name": name, "in": "header", "required": True, "schema": ID}


def _described(row: Route, noun: Noun, operation: Operation) -> dict[str, Any]:
    described: dict[str, Any] = {
        "tags": [noun.tag],
        "summary": operation.summary,
        "operationId": _id(row),
        "responses": {
            **{str(status): _answer(row, answer) for status, answer in operation.answers.items()},
            **errors.of(row, operation.errors),
        },
    }
    if items := [*map(_parameter, operation.query.items()), *map(_header, operation.headers)]:
        described["parameters"] = items
    if operation.body is not None and row.verb not in ("GET", "HEAD", "DELETE"):
        described["requestBody"] = _body(operation)
    if not isinstance(row.access, Public):
        described["security"] = [{"token": []}]
    return described


def _id(row: Route) -> str:
    """Return the operationId, which is unique for each route."""
    return f"{row.verb.lower()}_{re.sub(r'[^a-zA-Z0-9]+', '_', row.path).strip('_') or 'root'}"


def _in_path(name: str) -> dict[str, Any]:
    words, schema = parameters.PATH[name]
    return {"name": name, "in": "path", "required": True, "description": words, "schema": schema}


def _body(operation: Operation) -> dict[str, Any]:
    content: dict[str, Any] = {"schema": operation.body}
    if operation.example is not None:
        content["examples"] = {"good": {"value": operation.example}}
    return {"required": operation.body_needed, "content": {"application/json": content}}


def _answer(row: Route, answer: Answer) -> Mapping[str, Any]:
    response: dict[str, Any] = {"description": _WORDS.get(answer.schema is None, "")}
    if answer.schema is not None and row.verb != "HEAD":
        response["content"] = {answer.media_type: {"schema": answer.schema}}
    if answer.headers:
        response["headers"] = {name: {"required": True, "schema": TEXT} for name in answer.headers}
    return response


_WORDS = {True: "Done", False: "What was asked for"}
