"""Stacks: create, change, read, and run actions on them."""

from __future__ import annotations

from stoker.http.heat import actions, previews, stack_lookup, stacks
from stoker.http.openapi.heat import templates
from stoker.http.openapi.operations import Answer, Noun, Operation, empty, ok
from stoker.http.openapi.schemas import (
    ANYTHING,
    FLAG,
    ID,
    MAP,
    NOTHING,
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
    under,
    with_description,
)
from stoker.model.status import Action, Status

STATUS: Schema = {"type": "string", "pattern": f"^({'|'.join(Action)})_({'|'.join(Status)})$"}
LINKS = list_of(ref("Link"))
_SUMMARY: dict[str, Schema] = {
    "id": ID,
    "links": LINKS,
    "stack_name": ID,
    "description": TEXT,
    "creation_time": TIME,
    "updated_time": maybe(TIME),
    "deletion_time": maybe(TIME),
    "stack_owner": maybe(TEXT),
    "parent": with_description(maybe(TEXT), "The id of the stack that it is nested in"),
    "stack_user_project_id": TEXT,
    "tags": {"type": ["array", "null"], "items": TEXT},
}
_STATUS: dict[str, Schema] = {"stack_status": STATUS, "stack_status_reason": TEXT}
_DETAIL: dict[str, Schema] = {
    "template_description": TEXT,
    "notification_topics": list_of(TEXT),
    "capabilities": list_of(TEXT),
    "parameters": with_description(by_name(TEXT), "All values as text, hidden ones as ******"),
    "disable_rollback": FLAG,
    "timeout_mins": maybe(WHOLE),
}
_IDENTITY = record({"tenant": TEXT, "stack_name": TEXT, "stack_id": ID, "path": TEXT})

SCHEMAS: dict[str, Schema] = {
    "StackSummary": record({**_SUMMARY, **_STATUS}),
    "Stack": record({**_SUMMARY, **_STATUS, **_DETAIL}, outputs=list_of(ref("Output"))),
    "Output": record({"output_key": TEXT, "description": ANYTHING, "output_value": ANYTHING}, output_error=TEXT),
    "Change": record(
        {
            "resource_name": ID,
            "resource_type": TEXT,
            "resource_action": one_of(*Action),
            "resource_status": one_of(*Status),
            "resource_status_reason": TEXT,
            "resource_identity": _IDENTITY,
            "stack_identity": _IDENTITY,
            "stack_name": ID,
            "physical_resource_id": maybe(TEXT),
            "creation_time": maybe(TIME),
            "updated_time": maybe(TIME),
            "description": TEXT,
            "metadata": MAP,
            "attributes": MAP,
            "required_by": list_of(TEXT),
            "properties": MAP,
            "changed_properties": with_description(list_of(TEXT), "Names of the properties that differ"),
        }
    ),
    "PreviewedResource": {
        "description": "A resource; or of one that would be a stack, the list of the resources in it",
        "anyOf": [
            record(
                {
                    "resource_name": ID,
                    "resource_type": TEXT,
                    "resource_action": one_of(Action.INIT),
                    "resource_status": one_of(Status.COMPLETE),
                    "resource_status_reason": TEXT,
                    "resource_identity": _IDENTITY,
                    "stack_identity": _IDENTITY,
                    "stack_name": ID,
                    "physical_resource_id": TEXT,
                    "creation_time": NOTHING,
                    "updated_time": NOTHING,
                    "description": TEXT,
                    "metadata": MAP,
                    "attributes": MAP,
                    "required_by": list_of(TEXT),
                    "properties": MAP,
                },
                parent_resource=TEXT,
            ),
            list_of(ref("PreviewedResource")),
        ],
    },
    "ExportedResource": record(
        {
            "name": ID,
            "resource_id": maybe(TEXT),
            "type": TEXT,
            "action": one_of(*Action),
            "status": one_of(*Status),
            "metadata": MAP,
            "resource_data": MAP,
        },
        resources=with_description(by_name(ref("ExportedResource")), "Of the nested stack that it is"),
    ),
    "ExportedStack": record(
        {
            "name": ID,
            "id": ID,
            "action": one_of(*Action),
            "status": one_of(*Status),
            "template": MAP,
            "environment": MAP,
            "files": by_name(TEXT),
            "project_id": TEXT,
            "stack_user_project_id": TEXT,
            "tags": list_of(TEXT),
            "resources": by_name(ref("ExportedResource")),
        }
    ),
}

_SOME: dict[str, Schema] = {
    **templates.STACK_REQUEST,
    "timeout_mins": with_description(
        {"type": ["integer", "null"], "minimum": 0, "maximum": 2**31 - 1}, "0: the site's own"
    ),
    "disable_rollback": maybe(WORD_FLAG),
    "tags": with_description(maybe(TEXT), "With commas"),
}
_NEW = request(
    {"stack_name": {"type": "string", "pattern": "^[a-zA-Z][a-zA-Z0-9_.-]{0,254}$"}},
    **_SOME,
    template=templates.TEMPLATE,
)
_ADOPTED = {
    **_NEW,
    "properties": {
        **_NEW["properties"],
        "adopt_stack_data": with_description(
            {"anyOf": [ref("ExportedStack"), {"type": "string"}]}, "What an export says, to be taken over"
        ),
    },
    "anyOf": [{"required": ["template"]}, {"required": ["adopt_stack_data"]}],
}
_WHOLE = request({"template": templates.TEMPLATE}, **_SOME)
_PART = request(**_SOME, template=templates.TEMPLATE, clear_parameters=maybe(list_of(TEXT)))
_EXAMPLE = {"stack_name": "example", "template": templates.EXAMPLE, "parameters": {"length": 8}, "tags": "a,b"}
_FRESH = {**_EXAMPLE, "parameters": {"length": 9}}
_PLAIN_FLAG = one_of("true", "false")
_FLAGS = ("show_deleted", "show_nested", "show_hidden", "with_count")
_WORDS = ("tags", "tags_any", "not_tags", "not_tags_any")
_REDIRECT = under("stack", record({"links": LINKS}))
_CHANGES = under(
    "resource_changes",
    record({kind: list_of(ref("Change")) for kind in ("unchanged", "updated", "replaced", "added", "deleted")}),
)

NOUN = Noun(
    "Stacks",
    {
        stacks.index: Operation(
            summary="The stacks of the project, newest first",
            query={
                "limit": WHOLE,
                "marker": REQUESTED,
                "sort_keys": REQUESTED,
                "sort_dir": REQUESTED,
                **dict.fromkeys(_FLAGS, _PLAIN_FLAG),
                **dict.fromkeys(_WORDS, with_description(REQUESTED, "Tags with commas")),
                **dict.fromkeys(
                    stacks.FILTERS, with_description(REQUESTED, "Only those of this value; may be given several times")
                ),
            },
            answers=ok(record({"stacks": list_of(ref("StackSummary"))}, links=LINKS, count=WHOLE)),
        ),
        stacks.create: Operation(
            summary="Make a stack",
            body=_ADOPTED,
            example=_EXAMPLE,
            answers=ok(under("stack", record({"id": ID, "links": LINKS})), 201, "Location"),
            errors=(409,),
        ),
        previews.create: Operation(
            summary="What a stack would be, without making it",
            body={**_NEW, "required": ["stack_name", "template"]},
            example={**_EXAMPLE, "stack_name": "previewed"},
            answers=ok(
                under(
                    "stack",
                    record(
                        {**_SUMMARY, **_DETAIL, "resources": list_of(ref("PreviewedResource"))},
                        outputs=list_of(ref("Output")),
                    ),
                )
            ),
            errors=(409,),
        ),
        stack_lookup.redirect: Operation(
            summary="From a name or an id to the stack's own URL: the same is to be asked there",
            answers={302: Answer(_REDIRECT, ("Location",))},
        ),
        stacks.show: Operation(
            summary="One stack",
            query={"resolve_outputs": with_description(_PLAIN_FLAG, "false: without its outputs")},
            answers=ok(under("stack", ref("Stack"))),
        ),
        stacks.replace: Operation(
            summary="Update a stack to a whole new definition",
            body=_WHOLE,
            example=_FRESH,
            answers=empty(202),
            errors=(409,),
        ),
        stacks.change: Operation(
            summary="Update a stack, keeping what is not said",
            body=_PART,
            example=_FRESH,
            answers=empty(202),
            errors=(409,),
        ),
        previews.replace_it: Operation(
            summary="What an update to a whole new definition would do",
            query={"show_nested": _PLAIN_FLAG},
            body=_WHOLE,
            example=_FRESH,
            answers=ok(_CHANGES),
            errors=(409,),
        ),
        previews.change: Operation(
            summary="What an update that keeps what is not said would do",
            query={"show_nested": _PLAIN_FLAG},
            body=_PART,
            example=_FRESH,
            answers=ok(_CHANGES),
            errors=(409,),
        ),
        stacks.delete: Operation(summary="Delete a stack", answers=empty(), errors=(409,)),
        actions.act: Operation(
            summary="Suspend, resume or check a stack, or cancel its update",
            body={
                "type": "object",
                "properties": dict.fromkeys(actions.ACTIONS, ANYTHING),
                "additionalProperties": False,
                "minProperties": 1,
                "maxProperties": 1,
            },
            example={"check": None},
            answers=ok(NOTHING),
            errors=(409,),
        ),
        stacks.abandon: Operation(
            summary="Forget a stack, leaving what it made", answers=ok(ref("ExportedStack")), errors=(409,)
        ),
        stacks.export: Operation(summary="All that it takes to adopt the stack", answers=ok(ref("ExportedStack"))),
        stacks.template: Operation(summary="The stack's template", answers=ok(MAP)),
        stacks.environment: Operation(summary="The stack's environment", answers=ok(ref("Environment"))),
        stacks.files: Operation(summary="The files that came with the template", answers=ok(by_name(TEXT))),
        stacks.list_outputs: Operation(
            summary="The outputs' names",
            answers=ok(under("outputs", list_of(record({"output_key": TEXT, "description": ANYTHING})))),
        ),
        stacks.show_output: Operation(summary="One output's value", answers=ok(under("output", ref("Output")))),
    },
    SCHEMAS,
)
