"""Triggers and schedules, both Stoker's own."""

from __future__ import annotations

from stoker.http.heat import schedules, trigger_events, triggers
from stoker.http.heat.deployments import SIGNAL_TRANSPORTS
from stoker.http.openapi.operations import Answer, Noun, Operation, empty, ok
from stoker.http.openapi.schemas import (
    FLAG,
    ID,
    MAP,
    NUMBER,
    REQUESTED,
    TEXT,
    TIME,
    WHOLE,
    WORD_FLAG,
    Schema,
    by_name,
    list_of,
    maybe,
    one_of,
    record,
    ref,
    request,
    text,
    under,
    with_description,
    without_extras,
)
from stoker.model.trigger import MisfirePolicy, TargetStatus, TriggerStatus

_AT_LEAST_ONE: Schema = {"type": "integer", "minimum": 1, "maximum": 2**31 - 1}
_PERCENT: Schema = {"type": "number", "minimum": 0, "maximum": 100}
_SAID = {
    "action": with_description(maybe(text(255, 1)), "Needed for a component: one that it has. Else TRIGGER"),
    "stack": with_description(maybe(text(255, 1)), "A name or an id, of the stack that has the resource"),
    "resource": with_description(maybe(text(255, 1)), "A deployment, a group of them, a component or a config"),
    "deployment_id": maybe(text(64, 1)),
    "config_id": maybe(text(64, 1)),
    "servers": with_description(
        maybe({"type": "array", "items": text(255, 1), "minItems": 1}),
        "Names or ids; where nothing is said, those that the deployments are on",
    ),
    "labels": with_description(
        maybe({**by_name(TEXT), "minProperties": 1}), "Those servers with all of these, of the ones that it is about"
    ),
    "input_values": with_description(maybe(MAP), "In place of those that the deployments have"),
    "name": with_description(
        maybe(text(255, 1)), "Of the deployments; else each is called as the original, _ and the action"
    ),
    "signal_transport": maybe(one_of(*SIGNAL_TRANSPORTS)),
    "timeout": with_description(
        maybe({"type": "number", "minimum": 1, "maximum": 315_360_000}), "Seconds that a run may take"
    ),
    "max_concurrent": with_description(maybe(_AT_LEAST_ONE), "At a time; else all at once"),
    "max_fail_percentage": with_description(
        maybe(_PERCENT), "Nothing more is begun once more of all servers have failed"
    ),
    "require_window": with_description(maybe(FLAG), "Each server waits for its own maintenance window"),
}
_ASKED = without_extras(request(**_SAID))
_EXAMPLE = {
    "stack": "shop",
    "resource": "database",
    "action": "BACKUP",
    "input_values": {"target": "s3"},
    "max_concurrent": 50,
}
#: As the client sent it, whatever its value.
_SCHEDULE = {
    "cron": with_description(maybe(text(255, 1)), 'Five fields, such as "0 2 * * *", or a word such as @daily'),
    "at": with_description(maybe(REQUESTED), "The one time, such as 2026-01-01T00:00:00Z"),
    "timezone": with_description(maybe(text(64, 1)), "In which these are read, such as Europe/Vienna; else UTC"),
    "require_window": maybe(FLAG),
    "misfire_policy": with_description(
        maybe(one_of(*MisfirePolicy)), "What becomes of a time that passed while nobody served: once, or nothing"
    ),
    "enabled": maybe(FLAG),
}

SCHEMAS: dict[str, Schema] = {
    "SoftwareTrigger": record(
        {
            "id": ID,
            "name": TEXT,
            "action": TEXT,
            "source": with_description(MAP, "What was named"),
            "status": one_of(*TriggerStatus),
            "status_reason": TEXT,
            "requested_by": maybe(TEXT),
            "schedule_id": maybe(ID),
            "total": WHOLE,
            "queued": WHOLE,
            "running": WHOLE,
            "complete": WHOLE,
            "failed": WHOLE,
            "cancelled": WHOLE,
            "input_values": with_description(MAP, "Without the values of secret ones"),
            "signal_transport": maybe(TEXT),
            "timeout": maybe(NUMBER),
            "max_concurrent": maybe(WHOLE),
            "max_fail_percentage": NUMBER,
            "require_window": FLAG,
            "creation_time": TIME,
            "end_time": maybe(TIME),
        },
        targets=list_of(ref("TriggerTarget")),
    ),
    "TriggerTarget": record(
        {
            "position": WHOLE,
            "server_id": ID,
            "server_name": TEXT,
            "deployment_id": maybe(ID),
            "name": TEXT,
            "status": one_of(*TargetStatus),
            "status_reason": TEXT,
            "run": maybe(ref("DeploymentRun")),
        }
    ),
    "SoftwareSchedule": record(
        {
            "id": ID,
            "name": TEXT,
            "trigger": with_description(MAP, "As a request to trigger it, without the values of secret inputs"),
            "cron": maybe(TEXT),
            "at": maybe(TIME),
            "timezone": TEXT,
            "require_window": FLAG,
            "misfire_policy": one_of(*MisfirePolicy),
            "enabled": FLAG,
            "next_time": maybe(TIME),
            "last_time": maybe(TIME),
            "last_trigger_id": maybe(ID),
            "last_error": with_description(maybe(TEXT), "Why the last time began nothing"),
            "run_count": WHOLE,
            "missed_count": WHOLE,
            "requested_by": maybe(TEXT),
            "creation_time": TIME,
        }
    ),
}
_TRIGGER = under("software_trigger", ref("SoftwareTrigger"))
_ONE_SCHEDULE = under("software_schedule", ref("SoftwareSchedule"))

TRIGGERS = Noun(
    "Software triggers",
    {
        triggers.create: Operation(
            summary="Run an action of a component, or any config, on servers",
            body=_ASKED,
            example=_EXAMPLE,
            answers=ok(_TRIGGER, 201),
            errors=(409,),
        ),
        triggers.index: Operation(
            summary="The triggers of the project, newest first",
            query={
                "limit": _AT_LEAST_ONE,
                "marker": REQUESTED,
                "status": one_of(*TriggerStatus),
                "stack": with_description(REQUESTED, "Only those of resources of this stack, by name or id"),
            },
            answers=ok(under("software_triggers", list_of(ref("SoftwareTrigger")))),
        ),
        triggers.show: Operation(summary="One trigger with all its servers", answers=ok(_TRIGGER)),
        trigger_events.follow: Operation(
            summary="Server-sent events: target, log and trigger as they change, and at last end",
            answers={200: Answer(TEXT, media_type="text/event-stream")},
        ),
        triggers.cancel: Operation(
            summary="Begin nothing more, and have the agents stop what runs",
            body=request(force=with_description(maybe(WORD_FLAG), "Do not wait for what agents say")),
            body_needed=False,
            answers=ok(_TRIGGER, 202),
            errors=(409,),
        ),
        triggers.retry: Operation(
            summary="The same as a new trigger, on the servers where it failed or was not run",
            body=request(only_failed=with_description(maybe(WORD_FLAG), "False: on all of them")),
            body_needed=False,
            answers=ok(_TRIGGER, 201),
            errors=(409,),
        ),
        triggers.delete: Operation(
            summary="Forget a trigger that has ended, with its deployments", answers=empty(), errors=(409,)
        ),
    },
    {name: each for name, each in SCHEMAS.items() if name != "SoftwareSchedule"},
)

SCHEDULES = Noun(
    "Software schedules",
    {
        schedules.create: Operation(
            summary="Trigger something at a time, or again and again",
            body=request({"name": text(255, 1), "trigger": _ASKED}, **_SCHEDULE),
            example={"name": "nightly", "trigger": _EXAMPLE, "cron": "0 2 * * *", "timezone": "Europe/Vienna"},
            answers=ok(_ONE_SCHEDULE, 201),
            errors=(409,),
        ),
        schedules.index: Operation(
            summary="The schedules of the project",
            answers=ok(under("software_schedules", list_of(ref("SoftwareSchedule")))),
        ),
        schedules.show: Operation(summary="One schedule", answers=ok(_ONE_SCHEDULE)),
        schedules.change: Operation(
            summary="Change a schedule: what is not said stays",
            body=request(name=text(255, 1), trigger=_ASKED, **_SCHEDULE),
            answers=ok(_ONE_SCHEDULE),
            errors=(409,),
        ),
        schedules.delete: Operation(summary="Remove a schedule; what it has triggered stays", answers=empty()),
    },
    {"SoftwareSchedule": SCHEMAS["SoftwareSchedule"]},
)
