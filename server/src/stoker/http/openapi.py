"""Builds the OpenAPI document from routes, the contracts of their handlers and the types of requests and responses."""

from __future__ import annotations

import inspect
import re
from collections.abc import Collection, Iterable, Mapping
from http import HTTPStatus
from types import UnionType
from typing import Annotated, Any, Union, get_args, get_origin

import msgspec
from msgspec import UNSET, Meta

from stoker import VERSION
from stoker.http.access import PUBLIC
from stoker.http.api import Handler, Route
from stoker.http.contracts import DESCRIBED, DESCRIBED_TYPES, Absent, Answer, Contract, Count, Success, contract_of

Schema = Mapping[str, Any]
_REF = "#/components/schemas/{name}"
_NAMES = re.compile(r"{(\w+)}")
_TEXT = {"type": "string"}
_ERRORS = (400, 401, 403, 404, 409, 429, 503)
#: The ways in which callers authenticate (``http.access.Credential.scheme``).
_SCHEMES: Mapping[str, Mapping[str, Any]] = {
    "token": {"type": "apiKey", "in": "header", "name": "X-Auth-Token"},
    "agentKey": {"type": "http", "scheme": "bearer", "description": "The key of an enrolled server"},
    "relayKey": {"type": "http", "scheme": "bearer", "description": "The key of a relay"},
    "metricsToken": {"type": "http", "scheme": "bearer", "description": "The site's metrics_token"},
}
#: Descriptions of path and query parameters, which all routes share.
_PATH_PARAMETERS: dict[str, str] = {
    "project": "The id of the token's project",
    "config_id": "The id of a software config",
    "deployment_id": "The id of a software deployment",
    "stream": "stdout or stderr",
    "trigger_id": "The id of a trigger",
    "schedule_id": "The id of a schedule",
    "server_id": "The id of a server",
    "server": "The id or the name of a server",
    "enrollment": "The id of an enrollment",
    "relay": "The id of a relay",
    "type_name": "The name of a resource type, such as OS::Heat::SoftwareDeployment",
    "version": "A template version, such as heat_template_version.2018-08-31",
    "hook_name": "The name of a stored hook",
    "entry_name": "The name of a catalog entry",
    "number": "The version, a number from 1",
    "sha256": "The SHA-256 of a stored hook, as hexadecimal digits",
    "stack_name": "The name of a stack, or its id if the path contains no id",
    "stack_id": "The id of a stack",
    "snapshot_id": "The id of a snapshot",
    "resource_name": "The name of a resource in the stack's template",
    "event_id": "The id of an event",
    "output_key": "The name of an output in the stack's template",
}

_QUERY_PARAMETERS: dict[str, str] = {
    "limit": "The maximum number of entries",
    "marker": "The id of the last entry of the previous page",
    "sort_keys": "Names of fields to sort by, separated by commas",
    "sort_dir": "`desc`; any other value is ascending",
    "name": "The name of the entries",
}


class HeatErrorDetail(Answer):
    type: Annotated[str, Meta(description="The kind of error, as Heat names it")]
    traceback: None
    message: Annotated[str, Meta(description="What is wrong")] | Absent = UNSET


class HeatError(Answer):
    code: Count
    title: str
    explanation: str
    error: HeatErrorDetail


def document(routes: Iterable[Route], public_url: str) -> dict[str, Any]:
    """Return the OpenAPI document of these routes. Raises LookupError if the handler of a route has no contract."""
    types = TypeSchemas()
    error = {"application/json": {"schema": types.of(HeatError)}}
    paths: dict[str, dict[str, Any]] = {}
    for route in routes:
        paths.setdefault(path_of(route), {})[route.verb.lower()] = _operation(route, types)
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
            "responses": {
                f"Heat{status}": {"description": HTTPStatus(status).phrase, "content": error} for status in _ERRORS
            },
        },
    }


def path_of(route: Route) -> str:
    return route.path.replace("*}", "}")


def _operation(route: Route, types: TypeSchemas) -> dict[str, Any]:
    contract = contract_of(route.handler)
    if contract is None:
        raise LookupError(f"the handler of {route.verb} {route.path} has no contract")
    summary, description = _prose(route)
    query = types.of_query(contract.query.kind) if contract.query is not None else {}
    schemes = dict.fromkeys(credential.scheme for credential in route.access.credentials if credential.scheme)
    optional: dict[str, Any] = {
        "description": description,
        "parameters": list(map(_parameter, query.items())),
        "requestBody": _body(contract, types),
        "security": [{name: []} for name in schemes],
    }
    return {
        "tags": [_tag(route.handler)],
        "summary": summary,
        "operationId": _id(route),
        "responses": {
            **{str(status): _response(route, answer, types, status) for status, answer in contract.answers.items()},
            **_errors(route, contract.errors),
        },
        **{name: value for name, value in optional.items() if value},
    }


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
    description = schema.get("description", _QUERY_PARAMETERS.get(name, ""))
    bare = {key: value for key, value in schema.items() if key != "description"}
    return {"name": name, "in": "query", "description": description, "schema": bare}


def _id(route: Route) -> str:
    """Return the operationId, which is unique for each route."""
    return f"{route.verb.lower()}_{re.sub(r'[^a-zA-Z0-9]+', '_', route.path).strip('_') or 'root'}"


def _in_path(name: str) -> dict[str, Any]:
    schema = {"type": "string", "minLength": 1, "pattern": r"^[^/\u0000]+$"}
    return {"name": name, "in": "path", "required": True, "description": _PATH_PARAMETERS[name], "schema": schema}


def _errors(route: Route, errors: Collection[int]) -> dict[str, Any]:
    """Return the error responses of a route by status. ``errors``: those that do not follow from the route."""
    statuses = {400, *errors}
    if route.access is not PUBLIC:
        statuses |= {401, 403}
    if "{" in route.path:
        statuses.add(404)
    statuses |= {429, 503}
    return {str(status): {"$ref": f"#/components/responses/Heat{status}"} for status in sorted(statuses)}


class TypeSchemas:
    """Generates the schemas of types, and gathers those of the named types in ``components``."""

    def __init__(self) -> None:
        self.components: dict[str, Schema] = {}

    def of(self, kind: Any) -> Schema:
        """
        Return the schema of a type, or of an object with exactly the members of a map from names to types.

        Raises ValueError if two types have the same name.
        """
        if isinstance(kind, Mapping):
            return {
                "type": "object",
                "properties": {name: self.of(member) for name, member in kind.items()},
                "required": list(kind),
                "additionalProperties": False,
            }
        if get_origin(kind) in (
            Union,
            UnionType,
        ):  # msgspec refuses several types of objects, because it could not decode them
            choices: Schema = self._simplify({"anyOf": [self.of(choice) for choice in get_args(kind)]})
            return choices
        (schema,), components = msgspec.json.schema_components([kind], ref_template=_REF)
        self._add(components)
        simple: Schema = self._simplify(schema)
        return simple

    def of_query(self, kind: type[msgspec.Struct]) -> Mapping[str, Schema]:
        """Return the schemas of the parameters of a query string."""
        (_,), components = msgspec.json.schema_components([kind], ref_template=_REF)
        properties: Mapping[str, Schema] = components.pop(kind.__name__)["properties"]
        self._add(components)
        return {name: self._simplify(_without_null(schema)) for name, schema in properties.items()}

    def _add(self, components: Mapping[str, Schema]) -> None:
        for name, schema in components.items():
            shown = self._simplify(schema)
            if self.components.setdefault(name, shown) != shown:
                raise ValueError(f"two types called {name}")

    def _simplify(self, schema: Any) -> Any:
        """
        Return the schema without titles and null defaults, with ``type`` lists for types that allow null.

        The types of ``contracts.described`` are replaced by their schemas.
        """
        if isinstance(schema, list):
            return [self._simplify(part) for part in schema]
        if not isinstance(schema, dict):
            return schema
        if DESCRIBED in schema:
            others = {name: value for name, value in schema.items() if name != DESCRIBED}
            schema = {**self.of(DESCRIBED_TYPES[schema[DESCRIBED]]), **others}
        simple = {key: self._simplify(value) for key, value in schema.items() if not _says_nothing(key, value)}
        if isinstance(simple.get("description"), str):
            simple["description"] = " ".join(simple["description"].split()).replace("``", "`")
        return _join_null(simple)


def _says_nothing(key: str, value: Any) -> bool:
    """Return whether a member of a schema is a null default, or the title of a type and not a member with this name."""
    return (key == "default" and value is None) or (key == "title" and isinstance(value, str))


def _join_null(schema: dict[str, Any]) -> dict[str, Any]:
    """Return the schema of a type or null with a list of types, if the type has no other choices."""
    choices: list[Any] = schema.get("anyOf", [])
    if len(choices) != 2 or choices[1] != {"type": "null"} or "type" not in choices[0]:
        return schema
    kinds = choices[0]["type"]
    bare = {key: value for key, value in schema.items() if key != "anyOf"}
    joined = {**bare, **choices[0], "type": [*([kinds] if isinstance(kinds, str) else kinds), "null"]}
    return {**joined, "enum": [*joined["enum"], None]} if "enum" in joined else joined


def _without_null(schema: Schema) -> Schema:
    """Return the schema of a parameter, which is absent where the type has None."""
    if "anyOf" not in schema:
        return schema
    choices = [choice for choice in schema["anyOf"] if choice != {"type": "null"}]
    bare = {key: value for key, value in schema.items() if key not in ("anyOf", "default")}
    return {**bare, **choices[0]} if len(choices) == 1 else {**bare, "anyOf": choices}
