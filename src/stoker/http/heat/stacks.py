"""/v1/{project}/stacks"""

from __future__ import annotations

from typing import Any

from stoker.hot import Environment, Parameters
from stoker.http import reading
from stoker.http.call import Call, Reply
from stoker.http.heat import finding, handing, shapes
from stoker.model.stack import Source, Stack
from stoker.stacks import moving, operations, outputs
from stoker.stacks.adoption import adopted
from stoker.stacks.operations import Options
from stoker.stacks.prepare import Prepared
from stoker.store import stack_lists, stacks
from stoker.store.stack_lists import Filter

#: Query keys of the list, and the column each means.
FILTERS = {
    "id": "id",
    "name": "name",
    "stack_name": "name",
    "status": "status",
    "stack_status": "status",
    "action": "action",
    "stack_action": "action",
    "username": "username",
    "stack_owner": "username",
    "stack_status_reason": "reason",
    "stack_user_project_id": "user_project_id",
    "tenant": "project_id",
    "owner_id": "parent_id",
    "parent": "parent_id",
}


def create(call: Call) -> Reply:
    body = reading.body(call)
    name = handing.name(body.get("stack_name"))
    data = handing.adopting(body)
    adopt = None if data is None else adopted(data)
    identity, prepared = handing.new(call, body, name)
    options = handing.options(body)
    made = call.services.store.write(
        lambda tx: operations.create(
            tx,
            call.services.engine,
            prepared,
            options,
            identity,
            username=call.user.user_name,
            adopt=adopt,
        )
    )
    href = finding.links(call).stack(made)
    return Reply(201, {"stack": {"id": made.id, "links": [shapes.link(href)]}}, {"Location": href})


def index(call: Call) -> Reply:
    wanted = _filter(call)
    with call.services.store.read() as tx:
        found = stack_lists.listed(tx, call.project, wanted)
        count = stack_lists.counted(tx, call.project, wanted) if _asked(call, "with_count") else None
    links = finding.links(call)
    shown: dict[str, Any] = {"stacks": [shapes.stack_summary(each, links) for each in found]}
    if wanted.limit and len(found) == wanted.limit:
        following = call.request.url.include_query_params(marker=found[-1].id)
        href = f"{call.services.settings.public_url}{following.path}?{following.query}"
        shown["links"] = [shapes.link(href, "next")]
    if count is not None:
        shown["count"] = count
    return Reply(200, shown)


def show(call: Call) -> Reply:
    resolve = reading.flag(call.query.get("resolve_outputs"), "resolve_outputs") is not False
    with call.services.store.read() as tx:
        found = finding.stack(tx, call)
        values = None
        if resolve and found.deleted_at is None:
            values = outputs.all_values(tx, call.services.engine, found)
    return Reply(200, {"stack": shapes.stack(found, finding.links(call), values)})


def replace(call: Call) -> Reply:
    return _update(call, *handing.replacing(call, reading.body(call)))


def change(call: Call) -> Reply:
    return _update(call, *handing.changing(call, reading.body(call)))


def delete(call: Call) -> Reply:
    with call.services.store.read() as tx:
        found = finding.stack(tx, call, live=True)
    finding.refuse_nested(found)
    call.services.store.write(lambda tx: operations.delete(tx, call.services.engine, found.id))
    return Reply(204)


def export(call: Call) -> Reply:
    with call.services.store.read() as tx:
        return Reply(200, moving.export(tx, finding.stack(tx, call, live=True)))


def abandon(call: Call) -> Reply:
    with call.services.store.read() as tx:
        found = finding.stack(tx, call, live=True)
    finding.refuse_nested(found)
    return Reply(200, call.services.store.write(lambda tx: moving.abandon(tx, call.services.engine, found.id)))


def template(call: Call) -> Reply:
    return Reply(200, dict(_source(call).template))


def environment(call: Call) -> Reply:
    with call.services.store.read() as tx:
        found = finding.stack(tx, call)
        source = stacks.source(tx, found.id)
    shown = Environment.parse(source.environment).to_json()
    given = {**shown.get("parameters", {}), **source.supplied}
    hidden = Parameters.from_json(found.parameters).hidden
    parameters = {name: "******" if name in hidden else value for name, value in given.items()}
    return Reply(200, {**shown, "parameters": parameters})


def files(call: Call) -> Reply:
    """Those of the whole tree: nested stacks have none of their own."""
    with call.services.store.read() as tx:
        return Reply(200, dict(stacks.source(tx, finding.stack(tx, call).root_id).files))


def list_outputs(call: Call) -> Reply:
    with call.services.store.read() as tx:
        found = finding.stack(tx, call)
    return Reply(200, {"outputs": outputs.names(found)})


def show_output(call: Call) -> Reply:
    with call.services.store.read() as tx:
        found = finding.stack(tx, call)
        value = outputs.one_value(tx, call.services.engine, found, call.path["output_key"])
    return Reply(200, {"output": value})


def _update(call: Call, stack: Stack, prepared: Prepared, options: Options) -> Reply:
    call.services.store.write(lambda tx: operations.update(tx, call.services.engine, stack.id, prepared, options))
    return Reply(202)


def _source(call: Call) -> Source:
    with call.services.store.read() as tx:
        return stacks.source(tx, finding.stack(tx, call).id)


def _filter(call: Call) -> Filter:
    equal: dict[str, list[str]] = {}
    for key, column in FILTERS.items():
        for value in call.query.getlist(key):
            action, _, status = value.partition("_")
            if column == "status" and status and action != "IN":  # CREATE_FAILED and the like
                equal.setdefault("action", []).append(action)
                equal.setdefault("status", []).append(status)
            else:
                equal.setdefault(column, []).append(value)
    direction = call.query.get("sort_dir")
    return Filter(
        equal=equal,
        show_deleted=_asked(call, "show_deleted"),
        show_nested=_asked(call, "show_nested"),
        tags=_words(call, "tags"),
        tags_any=_words(call, "tags_any"),
        not_tags=_words(call, "not_tags"),
        not_tags_any=_words(call, "not_tags_any"),
        hidden_tags=() if _asked(call, "show_hidden") else call.services.settings.hidden_tags,
        limit=reading.whole(call.query.get("limit"), "limit"),
        marker=call.query.get("marker"),
        sort_keys=[key for said in call.query.getlist("sort_keys") for key in said.split(",") if key],
        descending=None if direction is None else direction == "desc",
    )


def _words(call: Call, name: str) -> list[str]:
    return [word for said in call.query.getlist(name) for word in said.split(",") if word]


def _asked(call: Call, name: str) -> bool:
    return bool(reading.flag(call.query.get(name), name))
