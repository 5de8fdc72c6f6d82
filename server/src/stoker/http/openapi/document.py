"""Builds the OpenAPI document from routes and the contracts of their handlers."""

from __future__ import annotations

import inspect
import re
from collections.abc import Iterable, Mapping
from http import HTTPStatus
from typing import Any

from stoker.http.contracts import Contract, Success, contract_of
from stoker.http.openapi import parameters
from stoker.http.openapi.errors import ErrorResponses
from stoker.http.openapi.types import TypeSchemas
from stoker.http.request_context import Handler, Route
from stoker.version import VERSION

_NAMES = re.compile(r"{(\w+)}")
_TEXT = {"type": "string"}
#: The ways in which callers authenticate (``http.access.Credential.scheme``).
_SCHEMES: Mapping[str, Mapping[str, Any]] = {
    "token": {"type": "apiKey", "in": "header", "name": "X-Auth-Token"},
    "agentKey": {"type": "http", "scheme": "bearer", "description": "The key of an enrolled server"},
    "relayKey": {"type": "http", "scheme": "bearer", "description": "The key of a relay"},
    "metricsToken": {"type": "http", "scheme": "bearer", "description": "The site's metrics_token"},
}


def document(routes: Iterable[Route], public_url: str) -> dict[str, Any]:
    """Return the OpenAPI document of these routes. Raises LookupError if the handler of a route has no contract."""
    types = TypeSchemas()
    errors = ErrorResponses(types)
    paths: dict[str, dict[str, Any]] = {}
    for route in routes:
        paths.setdefault(path_of(route), {})[route.verb.lower()] = _operation(route, types, errors)
    for path, verbs in paths.items():
        if names := _NAMES.findall(path):
            verbs["parameters"] = [_in_path(name) for name in names]
    return {
        "openapi": "3.1.0",
        "info": {
            "title": "Stoker",
            "version": VERSION,
            "summary": "Software configuration for fleets of servers, with the API of Heat",
            "license": {"name": "Apache-2.0", "identifier": "Apache-2.0"},
        },
        "servers": [{"url": public_url}],
        "paths": dict(sorted(paths.items())),
        "components": {
            "securitySchemes": _SCHEMES,
            "schemas": types.components,
            "responses": errors.components,
        },
    }


def path_of(route: Route) -> str:
    """Return the route's path in the document."""
    return route.path.replace("*}", "}")


def _operation(route: Route, types: TypeSchemas, errors: ErrorResponses) -> dict[str, Any]:
    contract = contract_of(route.handler)
    if contract is None:
        raise LookupError(f"the handler of {route.verb} {route.path} has no contract")
    summary, description = _prose(route)
    operation: dict[str, Any] = {
        "tags": [_tag(route.handler)],
        "summary": summary,
        "operationId": _id(route),
        "responses": {
            **{str(status): _response(route, answer, types, status) for status, answer in contract.answers.items()},
            **errors.of(route, contract.errors),
        },
    }
    if description:
        operation["description"] = description
    query = types.of_query(contract.query.kind) if contract.query is not None else {}
    if items := list(map(_parameter, query.items())):
        operation["parameters"] = items
    if route.verb not in ("GET", "HEAD", "DELETE") and (body := _body(contract, types)):
        operation["requestBody"] = body
    if schemes := dict.fromkeys(credential.scheme for credential in route.access.credentials if credential.scheme):
        operation["security"] = [{name: []} for name in schemes]
    return operation


def _body(contract: Contract, types: TypeSchemas) -> dict[str, Any] | None:
    media_type, decoder = contract.request_media_type or "application/json", contract.body
    if decoder is None:
        is_raw = contract.request_media_type is not None
        return {"required": False, "content": {media_type: {"schema": {}}}} if is_raw else None
    content: dict[str, Any] = {"schema": types.of(decoder.kind)}
    if contract.example is not None:
        content["examples"] = {"good": {"value": contract.example}}
    return {"required": not decoder.is_optional, "content": {media_type: content}}


def _prose(route: Route) -> tuple[str, str]:
    """
    Return the summary and the description of a route: the first sentence of the handler's docstring, and the others.

    The names of errors are left out, because the document lists their statuses. Raises LookupError.
    """
    docstring = " ".join((inspect.getdoc(route.handler) or "").split()).replace("``", "`")
    if not docstring:
        raise LookupError(f"the handler of {route.verb} {route.path} has no docstring")
    first, *others = re.split(r"(?<=[.:]) (?=[A-Z`])", docstring)
    return first.rstrip(".:"), " ".join(sentence for sentence in others if not sentence.startswith("Raises "))


def _tag(handler: Handler) -> str:
    """Return the API and the noun of a handler: the names of its package and its module."""
    *_, package, module = handler.__module__.split(".")
    return f"{package}: {module.replace('_', ' ')}"


def _response(route: Route, answer: Success, types: TypeSchemas, status: int) -> Mapping[str, Any]:
    response: dict[str, Any] = {"description": HTTPStatus(status).phrase}
    if answer.body is not None and route.verb != "HEAD":
        response["content"] = {answer.media_type: {"schema": types.of(answer.body)}}
    if answer.headers:
        response["headers"] = {name: {"required": True, "schema": _TEXT} for name in answer.headers}
    return response


def _parameter(named: tuple[str, Mapping[str, Any]]) -> dict[str, Any]:
    name, schema = named
    description = schema.get("description", parameters.QUERY.get(name, ""))
    bare = {key: value for key, value in schema.items() if key != "description"}
    return {"name": name, "in": "query", "description": description, "schema": bare}


def _id(route: Route) -> str:
    """Return the operationId, which is unique for each route."""
    return f"{route.verb.lower()}_{re.sub(r'[^a-zA-Z0-9]+', '_', route.path).strip('_') or 'root'}"


def _in_path(name: str) -> dict[str, Any]:
    schema = {"type": "string", "minLength": 1, "pattern": r"^[^/\u0000]+$"}
    return {"name": name, "in": "path", "required": True, "description": parameters.PATH[name], "schema": schema}
