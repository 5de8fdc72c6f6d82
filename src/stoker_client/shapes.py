"""The objects of the API as they travel. The wire is the contract, so these are plain dictionaries with known keys."""

from typing import Any, NotRequired, TypedDict


class Output(TypedDict):
    """One output of a stack."""

    output_key: str
    description: NotRequired[str]
    output_value: NotRequired[Any]
    output_error: NotRequired[str]


class Stack(TypedDict):
    """A stack, as shown; lists carry fewer keys."""

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
    """How far an agent says it is."""

    state: str
    percent: float | None
    message: str | None
    time: str


class LiveDeployment(TypedDict, total=False):
    """What a resource that is a running deployment tells besides Heat's fields."""

    status_reason: str
    progress: Progress | None
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
    """What an update would do to a resource."""

    resource_name: str
    resource_type: str
    physical_resource_id: NotRequired[str | None]
    properties: NotRequired[dict[str, Any]]
    changed_properties: NotRequired[list[str]]


class Event(TypedDict):
    """One step in the life of a stack or of a resource."""

    id: str
    event_time: str
    resource_name: str
    resource_status: str
    resource_status_reason: NotRequired[str]
    physical_resource_id: NotRequired[str]


class Config(TypedDict):
    """A software config: immutable."""

    id: str
    name: str | None
    group: str | None
    creation_time: NotRequired[str]
    config: NotRequired[Any]
    inputs: NotRequired[list[dict[str, Any]]]
    outputs: NotRequired[list[dict[str, Any]]]
    options: NotRequired[dict[str, Any]]


class Deployment(TypedDict):
    """A config joined with a server."""

    id: str
    server_id: str
    config_id: str
    action: str | None
    status: str | None
    status_reason: str | None
    input_values: NotRequired[dict[str, Any] | None]
    output_values: NotRequired[dict[str, Any] | None]
    creation_time: NotRequired[str]
    updated_time: NotRequired[str]


class Run(TypedDict, total=False):
    """One run of a deployment, as its history tells it."""

    number: int
    config_id: str
    action: str | None
    state: str
    silent_seconds: float | None
    percent: float | None
    message: str | None
    queued_time: str | None
    delivered_time: str | None
    start_time: str | None
    end_time: str | None
    status: str | None
    status_code: int | str | None
    status_reason: str | None
    asked_by: str | None
    input_values: dict[str, Any] | None
    output_values: dict[str, Any] | None
    stdout_bytes: int
    stderr_bytes: int


class Target(TypedDict):
    """One server of a trigger."""

    position: int
    server_id: str
    server_name: NotRequired[str | None]
    deployment_id: NotRequired[str | None]
    name: NotRequired[str | None]
    status: str
    status_reason: NotRequired[str | None]
    run: NotRequired[Run | None]


class Trigger(TypedDict):
    """An action or a config that runs on servers; the lists leave out ``targets``."""

    id: str
    status: str
    name: NotRequired[str | None]
    action: NotRequired[str]
    source: NotRequired[dict[str, Any]]
    status_reason: NotRequired[str | None]
    asked_by: NotRequired[str | None]
    schedule_id: NotRequired[str | None]
    total: NotRequired[int]
    queued: NotRequired[int]
    running: NotRequired[int]
    complete: NotRequired[int]
    failed: NotRequired[int]
    cancelled: NotRequired[int]
    input_values: NotRequired[dict[str, Any]]
    max_concurrent: NotRequired[int | None]
    max_fail_percentage: NotRequired[int | None]
    creation_time: NotRequired[str]
    end_time: NotRequired[str | None]
    targets: NotRequired[list[Target]]


class Schedule(TypedDict):
    """A trigger that comes by itself."""

    id: str
    name: str | None
    trigger: dict[str, Any]
    cron: NotRequired[str | None]
    at: NotRequired[str | None]
    timezone: NotRequired[str]
    in_window: NotRequired[bool]
    missed: NotRequired[str]
    enabled: NotRequired[bool]
    next_time: NotRequired[str | None]
    last_time: NotRequired[str | None]
    last_trigger_id: NotRequired[str | None]
    last_error: NotRequired[str | None]
    times: NotRequired[int]
    times_missed: NotRequired[int]
    asked_by: NotRequired[str | None]
    creation_time: NotRequired[str]


class Decision(TypedDict):
    """One entry of the audit log."""

    id: int
    time: str
    who: str | None
    what: str
    decision: str
    server_id: NotRequired[str | None]
    deployment_id: NotRequired[str | None]
    stack_id: NotRequired[str | None]
    reason: NotRequired[str | None]


class LogChunk(TypedDict):
    """A piece of what a script wrote."""

    seq: int
    stream: str
    data: str
    config_id: NotRequired[str]
    offset: NotRequired[int]
    size: NotRequired[int]
    time: NotRequired[str]


class TriggerLog(LogChunk):
    """The same among several servers."""

    server_id: str
    server_name: NotRequired[str | None]


class LogPage(TypedDict):
    """What came since the last page, and how the deployment stands."""

    logs: list[LogChunk]
    next: int
    status: str
    status_reason: NotRequired[str]
    progress: NotRequired[Progress | None]


class Server(TypedDict):
    """A server that configs can be deployed to."""

    id: str
    name: str
    kind: str
    status: str
    last_seen: NotRequired[str | None]
    created_at: NotRequired[str]
    agent_version: NotRequired[str | None]
    hooks: NotRequired[list[str]]
    hostname: NotRequired[str | None]
    stack_id: NotRequired[str | None]
    resource_name: NotRequired[str | None]
    labels: NotRequired[dict[str, str]]
    policy: NotRequired[Any]
    policy_source: NotRequired[str]
    window: NotRequired[dict[str, Any]]


class Enrolment(TypedDict):
    """The invitation for one server's agent."""

    token: str
    expires_at: str
    command: str


class Enrolled(TypedDict):
    """The answer to an enrolment."""

    server: Server
    enrolment: Enrolment
