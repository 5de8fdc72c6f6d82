"""Descriptions of path and query parameters, which all routes share."""

from __future__ import annotations

PATH: dict[str, str] = {
    "project": "The id of the token's project",
    "config_id": "The id of a software config",
    "deployment_id": "The id of a software deployment",
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

QUERY: dict[str, str] = {
    "limit": "The maximum number of entries",
    "marker": "The id of the last entry of the previous page",
    "sort_keys": "Names of fields to sort by, separated by commas",
    "sort_dir": "`desc`; any other value is ascending",
    "name": "The name of the entries",
}
