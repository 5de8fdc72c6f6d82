"""Descriptions of path and query parameters, which all routes share."""

from __future__ import annotations

from stoker.http.openapi.schemas import Schema

#: One segment of a path.
_SEGMENT: Schema = {"type": "string", "minLength": 1, "pattern": r"^[^/\u0000]+$"}


def _segment(words: str) -> tuple[str, Schema]:
    return words, _SEGMENT


PATH: dict[str, tuple[str, Schema]] = {
    "project": _segment("The id of the token's project"),
    "config_id": _segment("The id of a software config"),
    "deployment_id": _segment("The id of a software deployment"),
    "trigger_id": _segment("The id of a trigger"),
    "schedule_id": _segment("The id of a schedule"),
    "server_id": _segment("The id of a server"),
    "server": _segment("The id or the name of a server"),
    "type_name": _segment("The name of a resource type, such as OS::Heat::SoftwareDeployment"),
    "version": _segment("A template version, such as heat_template_version.2018-08-31"),
    "stack_name": _segment("The name of a stack; where no id follows, also its id"),
    "stack_id": _segment("The id of a stack"),
    "snapshot_id": _segment("The id of a snapshot"),
    "resource_name": _segment("The name of a resource in the stack's template"),
    "event_id": _segment("The id of an event"),
    "output_key": _segment("The name of an output in the stack's template"),
    "project_id": _segment("The id of a project"),
    "user_id": _segment("The id of a user"),
    "role_id": _segment("The name of a role, which is its id"),
    "credential_id": _segment("The id of an application credential"),
    "access": _segment("The access key of an EC2 credential"),
    "domain_id": _segment("The id of a domain"),
}

QUERY: dict[str, str] = {
    "limit": "No more than so many",
    "marker": "Those after the one with this id",
    "sort_keys": "Names of fields to sort by, with commas",
    "sort_dir": "desc, or else ascending",
    "name": "Only those of this name",
}
