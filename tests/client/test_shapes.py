"""The client's types of objects agree with the OpenAPI document, which is generated from the server's types."""

from __future__ import annotations

from types import UnionType
from typing import Any, NotRequired, Union, get_args, get_origin, get_type_hints, is_typeddict

import pytest

from stoker_client import shapes
from support.openapi import openapi_document

SCHEMAS = openapi_document()["components"]["schemas"]
#: The server's types of which the client has a part. A list omits members of some objects.
SERVER_TYPES = {
    "Output": ["StackOutput"],
    "Stack": ["StackSummary", "StackDetail"],
    "Progress": ["RunProgress"],
    "LiveDeployment": ["LiveDeployment"],
    "Resource": ["StackResource"],
    "Change": ["ResourceChange"],
    "Event": ["StackEvent", "EventDetail"],
    "Config": ["ConfigSummary", "SoftwareConfig"],
    "Deployment": ["SoftwareDeployment"],
    "Run": ["DeploymentRun"],
    "RunChange": ["RunChange"],
    "Check": ["ShownCheck"],
    "Target": ["TriggerTarget"],
    "Trigger": ["SoftwareTrigger"],
    "ServerPreview": ["ServerPreview"],
    "UpdatePreview": ["ChangesAnswer"],
    "PlannedRun": ["PlannedRun"],
    "Schedule": ["SoftwareSchedule"],
    "Decision": ["AuditEntry"],
    "LogChunk": ["OutputChunk"],
    "LogPage": ["DeploymentLogs"],
    "Server": ["ShownServer"],
    "AgentUpgrade": ["ShownAgentUpgrade"],
    "Enrollment": ["ShownEnrollment"],
    "EnrollmentToken": ["ServerEnrollment"],
}
#: Objects that the client assembles itself, or that are checked as a member of another.
ASSEMBLED = {"TriggerLog", "Enrolled"}
JSON = {str: "string", int: "integer", bool: "boolean", dict: "object", list: "array", type(None): "null"}


def types_of(annotation: Any) -> set[str]:
    """The JSON types that a Python type admits."""
    if get_origin(annotation) in (Union, UnionType, NotRequired):
        return set().union(*map(types_of, get_args(annotation)))
    if annotation is Any:
        return {*JSON.values(), "number"}
    if annotation is float:
        return {"number", "integer"}
    return {"object" if is_typeddict(annotation) else JSON[get_origin(annotation) or annotation]}


def types_in(schema: dict[str, Any]) -> set[str]:
    """The JSON types that a schema admits."""
    if "$ref" in schema:
        return types_in(SCHEMAS[schema["$ref"].rpartition("/")[2]])
    if "anyOf" in schema:
        return set().union(*map(types_in, schema["anyOf"]))
    if "enum" in schema and "type" not in schema:
        return {JSON[type(value)] for value in schema["enum"]}
    kinds = schema.get("type", [*JSON.values(), "number"])
    return {kinds} if isinstance(kinds, str) else set(kinds)


@pytest.mark.parametrize("name", SERVER_TYPES)
def test_a_type_of_the_client_is_a_part_of_the_servers(name):
    shape = getattr(shapes, name)
    for server_type in SERVER_TYPES[name]:
        schema = SCHEMAS[server_type]
        omits = server_type != SERVER_TYPES[name][-1]
        for member, annotation in get_type_hints(shape, include_extras=True).items():
            if member not in schema["properties"] and omits and member not in shape.__required_keys__:
                continue
            assert member in schema["properties"], f"{server_type} has no {member}"
            assert types_in(schema["properties"][member]) <= types_of(annotation), f"{server_type}.{member}"
        assert shape.__required_keys__ <= set(schema["required"]), server_type


def test_every_type_of_the_client_is_compared():
    declared = {name for name, value in vars(shapes).items() if is_typeddict(value)}
    assert declared == SERVER_TYPES.keys() | ASSEMBLED
