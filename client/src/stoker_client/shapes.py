"""
Types of the API's objects: dictionaries with known keys. `make shapes` writes this file from the OpenAPI document.

No key is certain: lists omit some, and Heat has none of Stoker's own.
"""

from __future__ import annotations

from typing import Any, TypedDict


class Change(TypedDict, total=False):
    resource_name: str
    resource_type: str
    resource_action: str
    resource_status: str
    resource_status_reason: str
    resource_identity: dict[str, Any]
    stack_identity: dict[str, Any]
    stack_name: str
    physical_resource_id: str | None
    creation_time: str | None
    updated_time: str | None
    description: str
    metadata: dict[str, Any]
    attributes: dict[str, Any]
    required_by: list[str]
    properties: dict[str, Any]
    changed_properties: list[str]
    previous_properties: dict[str, Any]


class Check(TypedDict, total=False):
    """`pending`: a requested check has no answer yet, so `state` is that of an earlier check."""

    deployment_id: str
    name: str | None
    stack_id: str | None
    stack_name: str | None
    resource_name: str | None
    server_id: str
    server_name: str | None
    server_status: str | None
    state: str
    since: str
    checked_at: str | None
    requested_at: str | None
    pending: bool
    check_interval: int | None
    enforce: bool
    reason: str
    summary: str
    changes: list[RunChange]


class Deployment(TypedDict, total=False):
    """`config_id` is the config that runs. Each run has another one."""

    id: str
    server_id: str
    config_id: str
    input_values: dict[str, Any]
    output_values: dict[str, Any]
    action: str | None
    status: str | None
    status_reason: str | None
    changed: bool | None
    changed_items: int
    creation_time: str
    updated_time: str
    server_name: str | None
    stack_name: str | None
    resource_name: str | None
    config_name: str | None
    requested_by: str | None


class Event(TypedDict, total=False):
    id: str
    event_time: str
    resource_name: str
    logical_resource_id: str
    resource_status: str
    resource_status_reason: str
    physical_resource_id: str
    links: list[dict[str, Any]]
    resource_type: str
    resource_properties: dict[str, Any]


class GraphNode(TypedDict, total=False):
    """A resource. Until its step begins, it has the state of its last action, and `waits_for` or `breakpoint`."""

    id: str
    resource_name: str
    stack_id: str
    resource_type: str
    resource_status: str
    resource_status_reason: str
    physical_resource_id: str | None
    nested_stack_id: str | None
    server_id: str | None
    server_name: str | None
    start_time: str | None
    end_time: str | None
    breakpoint: str | None
    waits_for: list[str]


class LogChunk(TypedDict, total=False):
    """
    A chunk of output. `offset` and `size` are in bytes. A gap between a chunk's end and the next offset of its stream
    means that output was cut.
    """

    seq: int
    config_id: str
    stream: str
    offset: int
    size: int
    data: str
    time: str


class OutputGroup(TypedDict, total=False):
    """Ended targets with equal exit codes and output, of which one represents the others."""

    count: int
    exit_code: str | None
    digest: str | None
    status_reason: str
    deployment_id: str | None
    stdout: str
    stderr: str
    is_cut: bool
    servers: list[str]


class Resource(TypedDict, total=False):
    """`description` and `attributes` are present in detailed responses only."""

    resource_name: str
    logical_resource_id: str
    physical_resource_id: str
    resource_type: str
    resource_status: str
    resource_status_reason: str
    creation_time: str
    updated_time: str
    required_by: list[str]
    links: list[dict[str, Any]]
    parent_resource: str
    description: str
    attributes: dict[str, Any]
    deployment: dict[str, Any]


class Run(TypedDict, total=False):
    """One execution of a deployment, from the request to the result."""

    number: int
    config_id: str
    action: str | None
    mode: str | None
    state: str
    unresponsive_seconds: int | None
    percent: int | None
    message: str | None
    last_heartbeat: str | None
    queued_time: str
    delivered_time: str | None
    channel: str | None
    start_time: str | None
    end_time: str | None
    status: str | None
    status_code: str | None
    status_reason: str | None
    requested_by: str | None
    input_values: dict[str, Any]
    output_values: dict[str, Any]
    changed: bool | None
    changes: list[RunChange]
    stdout_bytes: int
    stderr_bytes: int


class RunChange(TypedDict, total=False):
    """A part of the server that a run changed, or failed to change, with the difference as text."""

    item: str
    outcome: str
    diff: str


class Server(TypedDict, total=False):
    id: str
    name: str
    self_named: bool
    kind: str
    status: str
    last_seen: str | None
    created_at: str
    agent_version: str | None
    agent_outdated: bool
    hooks: list[str]
    hostname: str | None
    os: str | None
    address: str | None
    problem: str | None
    facts_at: str | None
    stack_id: str | None
    resource_name: str | None
    labels: dict[str, str]
    policy: dict[str, Any]
    policy_source: str
    window: dict[str, Any]
    denial: str | None
    facts: dict[str, Any] | None


class Stack(TypedDict, total=False):
    id: str
    links: list[dict[str, Any]]
    stack_name: str
    description: str
    creation_time: str
    updated_time: str | None
    deletion_time: str | None
    stack_owner: str | None
    parent: str | None
    stack_user_project_id: str
    tags: list[str] | None
    template_description: str
    notification_topics: list[str]
    capabilities: list[str]
    parameters: dict[str, str]
    disable_rollback: bool
    timeout_mins: int | None
    stack_status: str
    stack_status_reason: str
    outputs: list[dict[str, Any]]


class Target(TypedDict, total=False):
    position: int
    server_id: str
    server_name: str
    resource_name: str | None
    deployment_id: str | None
    name: str
    status: str
    status_reason: str
    changed: bool | None
    run: Run | None


class Trigger(TypedDict, total=False):
    id: str
    name: str
    action: str
    source: dict[str, Any]
    status: str
    status_reason: str
    requested_by: str | None
    schedule_id: str | None
    total: int
    queued: int
    running: int
    complete: int
    failed: int
    cancelled: int
    changed: int
    unchanged: int
    input_values: dict[str, Any]
    signal_transport: str | None
    timeout: float | None
    max_concurrent: int | None
    max_fail_percentage: float
    canary: int | str | None
    require_window: bool
    mode: str
    creation_time: str
    end_time: str | None
    targets: list[Target]
