"""Types of the API's objects. They are the JSON of the wire contract: dictionaries with known keys."""

from typing import Any, NotRequired, TypedDict


class Output(TypedDict):
    """One output of a stack."""

    output_key: str
    description: NotRequired[Any]
    output_value: NotRequired[Any]
    output_error: NotRequired[str]


class Stack(TypedDict):
    """A stack. Lists omit some keys."""

    id: str
    stack_name: str
    stack_status: str
    stack_status_reason: NotRequired[str]
    creation_time: NotRequired[str]
    updated_time: NotRequired[str | None]
    parameters: NotRequired[dict[str, str]]
    outputs: NotRequired[list[Output]]
    tags: NotRequired[list[str] | None]


class Progress(TypedDict, total=False):
    """An agent's report of a run's progress."""

    state: str
    percent: float | None
    message: str | None
    time: str


class LiveDeployment(TypedDict, total=False):
    """The live state of a resource whose deployment runs; a Stoker extension of Heat's resource."""

    status_reason: str | None
    last_log: str | None


class Resource(TypedDict):
    """One resource of a stack."""

    resource_name: str
    resource_type: str
    resource_status: str
    resource_status_reason: NotRequired[str]
    physical_resource_id: NotRequired[str]
    creation_time: NotRequired[str]
    updated_time: NotRequired[str | None]
    required_by: NotRequired[list[str]]
    deployment: NotRequired[LiveDeployment]


class Change(TypedDict):
    """The effect of an update on a resource."""

    resource_name: str
    resource_type: str
    resource_status: NotRequired[str]
    physical_resource_id: NotRequired[str | None]
    properties: NotRequired[dict[str, Any]]
    changed_properties: NotRequired[list[str]]
    previous_properties: NotRequired[dict[str, Any]]


class Event(TypedDict):
    """An event of a stack or a resource."""

    id: str
    event_time: str
    resource_name: str
    resource_status: str
    resource_status_reason: NotRequired[str]
    physical_resource_id: NotRequired[str]


class Config(TypedDict):
    """A software config, which is immutable."""

    id: str
    name: str | None
    group: str | None
    creation_time: NotRequired[str]
    config: NotRequired[Any]
    inputs: NotRequired[list[dict[str, Any]]]
    outputs: NotRequired[list[dict[str, Any]]]
    options: NotRequired[dict[str, Any]]


class Deployment(TypedDict):
    """A deployment: a config joined with a server."""

    id: str
    server_id: str
    config_id: str
    action: str | None
    status: str | None
    status_reason: str | None
    changed: NotRequired[bool | None]
    changed_items: NotRequired[int]
    input_values: NotRequired[dict[str, Any] | None]
    output_values: NotRequired[dict[str, Any] | None]
    creation_time: NotRequired[str]
    updated_time: NotRequired[str]
    server_name: NotRequired[str | None]
    stack_name: NotRequired[str | None]
    resource_name: NotRequired[str | None]
    config_name: NotRequired[str | None]
    requested_by: NotRequired[str | None]


class RunChange(TypedDict, total=False):
    """A part of the server that a run changed, or failed to change."""

    item: str
    outcome: str
    diff: str


class Run(TypedDict, total=False):
    """One run in the history of a deployment."""

    number: int
    config_id: str
    action: str | None
    state: str
    unresponsive_seconds: float | None
    percent: float | None
    message: str | None
    queued_time: str | None
    delivered_time: str | None
    start_time: str | None
    end_time: str | None
    status: str | None
    status_code: int | str | None
    status_reason: str | None
    requested_by: str | None
    mode: str | None
    input_values: dict[str, Any] | None
    output_values: dict[str, Any] | None
    changed: bool | None
    changes: list[RunChange]
    stdout_bytes: int
    stderr_bytes: int


class Check(TypedDict):
    """The last check of a deployment."""

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
    changes: NotRequired[list[RunChange]]


class Target(TypedDict):
    """One target of a trigger: a run on one server."""

    position: int
    server_id: str
    server_name: NotRequired[str | None]
    resource_name: NotRequired[str | None]
    deployment_id: NotRequired[str | None]
    name: NotRequired[str | None]
    status: str
    status_reason: NotRequired[str | None]
    changed: NotRequired[bool | None]
    run: NotRequired[Run | None]


class Trigger(TypedDict):
    """A trigger: an action or a config that runs on servers. Lists omit ``targets``."""

    id: str
    status: str
    name: NotRequired[str | None]
    action: NotRequired[str]
    source: NotRequired[dict[str, Any]]
    status_reason: NotRequired[str | None]
    requested_by: NotRequired[str | None]
    schedule_id: NotRequired[str | None]
    total: NotRequired[int]
    queued: NotRequired[int]
    running: NotRequired[int]
    complete: NotRequired[int]
    failed: NotRequired[int]
    cancelled: NotRequired[int]
    mode: NotRequired[str]
    changed: NotRequired[int]
    unchanged: NotRequired[int]
    input_values: NotRequired[dict[str, Any]]
    max_concurrent: NotRequired[int | None]
    max_fail_percentage: NotRequired[float]
    canary: NotRequired[int | str | None]
    creation_time: NotRequired[str]
    end_time: NotRequired[str | None]
    targets: NotRequired[list[Target]]


class ServerPreview(TypedDict):
    """The preview of a deployment of an update: a trigger, or the reason why there is none."""

    resource_name: str
    action: str
    trigger_id: str | None
    reason: str | None


class PlannedRun(TypedDict):
    """A run that an operation would start on a server."""

    resource_name: str
    action: str
    mode: str | None
    server_id: str | None
    server_name: str | None


class UpdatePreview(TypedDict):
    """The preview of an update."""

    resource_changes: dict[str, list[Change]]
    planned_runs: list[PlannedRun]
    server_previews: NotRequired[list[ServerPreview]]


class Schedule(TypedDict):
    """A schedule, which creates triggers."""

    id: str
    name: str | None
    trigger: dict[str, Any]
    cron: NotRequired[str | None]
    at: NotRequired[str | None]
    timezone: NotRequired[str]
    require_window: NotRequired[bool]
    misfire_policy: NotRequired[str]
    overlap_policy: NotRequired[str]
    enabled: NotRequired[bool]
    next_time: NotRequired[str | None]
    last_time: NotRequired[str | None]
    last_trigger_id: NotRequired[str | None]
    last_error: NotRequired[str | None]
    run_count: NotRequired[int]
    missed_count: NotRequired[int]
    requested_by: NotRequired[str | None]
    creation_time: NotRequired[str]


class Decision(TypedDict):
    """One entry of the audit log."""

    id: int
    time: str
    actor: str | None
    action: str
    outcome: str
    server_id: NotRequired[str | None]
    server_name: NotRequired[str | None]
    deployment_id: NotRequired[str | None]
    stack_id: NotRequired[str | None]
    stack_name: NotRequired[str | None]
    resource_name: NotRequired[str | None]
    config_name: NotRequired[str | None]
    reason: NotRequired[str | None]


class LogChunk(TypedDict):
    """A part of a run's output."""

    seq: int
    stream: str
    data: str
    config_id: NotRequired[str]
    offset: NotRequired[int]
    size: NotRequired[int]
    time: NotRequired[str]


class TriggerLog(LogChunk):
    """A log chunk with its server, and the resource whose deployment the run repeats."""

    server_id: str
    server_name: NotRequired[str | None]
    resource_name: NotRequired[str | None]


class LogPage(TypedDict):
    """New log chunks, and the state of the deployment."""

    logs: list[LogChunk]
    next: int
    status: str | None
    status_reason: NotRequired[str | None]
    progress: NotRequired[Progress | None]


class Server(TypedDict):
    """A server to which configs can be deployed."""

    id: str
    name: str
    kind: str
    status: str
    last_seen: NotRequired[str | None]
    created_at: NotRequired[str]
    agent_version: NotRequired[str | None]
    agent_outdated: NotRequired[bool]
    agent_upgrade: NotRequired[dict[str, Any] | None]
    hooks: NotRequired[list[str]]
    hostname: NotRequired[str | None]
    os: NotRequired[str | None]
    address: NotRequired[str | None]
    problem: NotRequired[str | None]
    facts: NotRequired[dict[str, Any] | None]
    facts_at: NotRequired[str | None]
    self_named: NotRequired[bool]
    stack_id: NotRequired[str | None]
    resource_name: NotRequired[str | None]
    labels: NotRequired[dict[str, str]]
    policy: NotRequired[Any]
    policy_source: NotRequired[str]
    window: NotRequired[dict[str, Any]]


class AgentUpgrade(TypedDict):
    """The last upgrade of a server's agent."""

    server_id: str
    server_name: str
    agent_version: str | None
    status: str
    version: str
    from_version: str | None
    reason: str | None
    is_canary: bool
    rollout_id: str
    requested_by: str
    requested_at: str


class EnrollmentToken(TypedDict):
    """A new enrollment, with its token."""

    id: NotRequired[str]
    token: str
    expires_at: str
    command: str
    url: str
    #: The reason why other machines may not reach ``url``.
    warning: str | None


class Enrollment(TypedDict):
    """An enrollment, without its token."""

    id: str
    status: str
    server_id: str | None
    limit: int
    uses: int
    name_from: str
    names: NotRequired[str | None]
    labels: dict[str, str]
    approval: bool
    rerun: bool
    created_at: str
    created_by: str | None
    expires_at: str


class Enrolled(TypedDict):
    """The answer to an enrollment."""

    server: Server
    enrollment: EnrollmentToken
