"""The requests to trigger and to schedule: their members, and what these rule out together."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Annotated, Any

from msgspec import UNSET, Meta, Struct, UnsetType

from stoker import json_values
from stoker.json_values import RequiredName, RequiredShortText
from stoker.model.errors import Invalid
from stoker.model.selectors import Selector, select
from stoker.model.trigger import MisfirePolicy, Mode, OverlapPolicy, check_canary

#: Members that name what a trigger runs. A resource needs its stack.
SOURCE_KEYS = ("stack", "resource", "deployment_id", "config_id")
#: Numbers stay whole if they are. Ten years at most.
_Timeout = Annotated[int, Meta(ge=1, le=315_360_000)] | Annotated[float, Meta(ge=1, le=315_360_000)]
_Percentage = Annotated[int, Meta(ge=0, le=100)] | Annotated[float, Meta(ge=0, le=100)]


class TriggerRequest(Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """
    A trigger to start.

    It runs the config of a resource (with its ``stack``), of a deployment, or ``config_id``, on ``servers`` (names or
    ids), on the servers with all ``labels`` that match ``selector``, or on the servers of the source's deployments.
    """

    action: Annotated[RequiredName | None, Meta(description="Required for a component. Default: TRIGGER")] = None
    stack: RequiredName | None = None
    resource: RequiredName | None = None
    deployment_id: RequiredShortText | None = None
    config_id: RequiredShortText | None = None
    servers: Annotated[tuple[RequiredName, ...], Meta(min_length=1, max_length=100_000)] | None = None
    labels: Annotated[dict[str, str], Meta(min_length=1)] | None = None
    selector: Annotated[
        str | None, Meta(description="A condition over labels and facts, such as tier=web and os.family=debian")
    ] = None
    input_values: Annotated[
        dict[str, Any] | None,
        Meta(
            description="Values that replace those of the source's deployments, converted to the types that the config"
            " declares"
        ),
    ] = None
    name: RequiredName | None = None
    signal_transport: RequiredName | None = None
    timeout: Annotated[_Timeout | None, Meta(description="Maximum seconds of a run")] = None
    max_concurrent: Annotated[
        Annotated[int, Meta(ge=1, le=2**31 - 1)] | None,
        Meta(description="Maximum number of servers at a time: a server runs one deployment at a time"),
    ] = None
    max_fail_percentage: _Percentage | None = None
    canary: Annotated[
        int | str | None,
        Meta(
            description="The servers to begin on: a number, or a percentage such as 10%. The others start when all runs"
            " on these have succeeded"
        ),
    ] = None
    require_window: Annotated[
        bool | None, Meta(description="Whether each server waits for its own maintenance window")
    ] = None
    allow_undeclared: Annotated[
        bool | None, Meta(description="Whether input_values may have names that the config does not declare")
    ] = None
    mode: Annotated[
        Mode | None, Meta(description="PREVIEW: show what the runs would change, and change nothing. Default: APPLY")
    ] = None

    def __post_init__(self) -> None:
        if sum(source is not None for source in (self.resource, self.deployment_id, self.config_id)) != 1:
            raise Invalid("a trigger needs one of: stack and resource, deployment_id, config_id")
        if (self.stack is None) is (self.resource is not None):
            raise Invalid("a resource is named with its stack: stack (a name or an id) and resource")
        if self.selection is not None and self.servers is not None:
            raise Invalid("servers are named one by one or by their labels and facts, not both")
        check_canary(self.canary)

    @property
    def selection(self) -> Selector | None:
        """What selects the servers by ``labels`` and ``selector``; None if neither is given. Raises Invalid."""
        return select(self.labels, self.selector)


def parse(body: Any) -> TriggerRequest:
    """Return the request to trigger that a schedule stores. Raises Invalid with the wrong member."""
    return json_values.convert(body, TriggerRequest, "the trigger")


class ScheduleRequest(Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """The changes to a schedule. A new one needs a name, a trigger, and ``cron`` or ``at``."""

    name: RequiredName | UnsetType = UNSET
    #: ``TriggerRequest`` in JSON, which the schedule stores.
    trigger: Annotated[Mapping[str, Any] | UnsetType, Meta(description="The body of a request to trigger")] = UNSET
    cron: Annotated[RequiredName | None, Meta(description='Five fields, such as "0 2 * * *", or a word: @daily')] = None
    at: Annotated[str | None, Meta(description="The only time, such as 2026-01-01T00:00:00Z")] = None
    timezone: Annotated[
        RequiredShortText | UnsetType | None,
        Meta(description="The time zone of both, such as Europe/Vienna. Default: UTC"),
    ] = UNSET
    require_window: bool | None = None
    misfire_policy: Annotated[
        MisfirePolicy | None, Meta(description="What happens if a time passes while no process is running")
    ] = None
    overlap_policy: Annotated[
        OverlapPolicy | None,
        Meta(description="What happens to runs of earlier times that no agent has started. Default: REPLACE"),
    ] = None
    enabled: bool | None = None

    def __post_init__(self) -> None:
        if self.cron is not None and self.at is not None:
            raise Invalid("a schedule has cron or at, not both")

    @property
    def moves(self) -> bool:
        """Whether the request may change the next time."""
        return self.timezone is not UNSET or any(part is not None for part in (self.cron, self.at, self.enabled))
