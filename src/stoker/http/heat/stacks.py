"""/v1/{project}/stacks"""

from __future__ import annotations

import re
from typing import Any
from uuid import uuid4

from stoker.hot import Environment, Parameters
from stoker.http import reading
from stoker.http.call import Call, Reply
from stoker.http.heat import finding, shapes
from stoker.model.errors import Invalid, NotSupported
from stoker.model.stack import Source
from stoker.stacks import operations, outputs
from stoker.stacks.operations import Options
from stoker.stacks.prepare import Handed, Identity, Prepared, prepare, prepare_change
from stoker.store import stacks
from stoker.store.stacks import Filter

_NAME = re.compile(r"[a-zA-Z][a-zA-Z0-9_.-]{0,254}")
#: Query keys of the list, and the column each means.
_FILTERS = {
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
}


def create(call: Call) -> Reply:
    body = reading.body(call)
    name = _name(body.get("stack_name"))
    if body.get("adopt_stack_data") is not None:
        raise NotSupported("Stack Adopt is not supported.")
    identity = Identity(str(uuid4()), name, call.project)
    prepared = prepare(call.services.engine, _handed(body), identity)
    options = _options(body)
    made = call.services.store.write(
        lambda tx: operations.create(
            tx,
            call.services.engine,
            prepared,
            options,
            stack_id=identity.stack_id,
            name=name,
            project_id=call.project,
            username=call.user.user_name,
        )
    )
    href = finding.links(call).stack(made)
    return Reply(201, {"stack": {"id": made.id, "links": [shapes.link(href)]}}, {"Location": href})


def index(call: Call) -> Reply:
    wanted = _filter(call)
    with call.services.store.read() as tx:
        found = stacks.listed(tx, call.project, wanted)
        count = stacks.counted(tx, call.project, wanted) if _asked(call, "with_count") else None
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
    """PUT: the whole stack anew; what is not said goes back to its default."""
    body = reading.body(call)
    if body.get("template") is None:
        raise Invalid("No template specified")
    identity, _ = _existing(call)
    options = _options(body)
    tags = options.tags if options.tags is not None else ()
    prepared = prepare(call.services.engine, _handed(body), identity)
    return _update(
        call,
        identity,
        prepared,
        Options(timeout_mins=options.timeout_mins, disable_rollback=options.disable_rollback, tags=tags),
    )


def change(call: Call) -> Reply:
    """PATCH: what is not said stays."""
    body = reading.body(call)
    identity, source = _existing(call)
    cleared = body.get("clear_parameters") or []
    if not isinstance(cleared, list):
        raise Invalid("clear_parameters must be a list of names")
    prepared = prepare_change(call.services.engine, _handed(body), identity, source, map(str, cleared))
    return _update(call, identity, prepared, _options(body))


def delete(call: Call) -> Reply:
    with call.services.store.read() as tx:
        found = finding.stack(tx, call, live=True)
    call.services.store.write(lambda tx: operations.delete(tx, call.services.engine, found.id))
    return Reply(204)


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
    return Reply(200, dict(_source(call).files))


def list_outputs(call: Call) -> Reply:
    with call.services.store.read() as tx:
        found = finding.stack(tx, call)
    return Reply(200, {"outputs": outputs.names(found)})


def show_output(call: Call) -> Reply:
    with call.services.store.read() as tx:
        found = finding.stack(tx, call)
        value = outputs.one_value(tx, call.services.engine, found, call.path["output_key"])
    return Reply(200, {"output": value})


def _update(call: Call, identity: Identity, prepared: Prepared, options: Options) -> Reply:
    call.services.store.write(
        lambda tx: operations.update(tx, call.services.engine, identity.stack_id, prepared, options)
    )
    return Reply(202)


def _existing(call: Call) -> tuple[Identity, Source]:
    with call.services.store.read() as tx:
        found = finding.stack(tx, call, live=True)
        return Identity(found.id, found.name, found.project_id), stacks.source(tx, found.id)


def _source(call: Call) -> Source:
    with call.services.store.read() as tx:
        return stacks.source(tx, finding.stack(tx, call).id)


def _name(said: Any) -> str:
    if said is None:
        raise Invalid("No stack name specified")
    if not isinstance(said, str) or not _NAME.fullmatch(said):
        raise Invalid(
            f"Invalid stack name {said!r} must contain only alphanumeric or '_-.' characters, "
            "must start with alpha and must be 255 characters or less."
        )
    return said


def _handed(body: dict[str, Any]) -> Handed:
    if body.get("template") is None and body.get("template_url") is not None:
        raise NotSupported("template_url is not supported: send the template itself")
    return Handed(
        template=body.get("template"),
        files=body.get("files"),
        environment=body.get("environment"),
        environment_files=body.get("environment_files"),
        parameters=body.get("parameters"),
    )


def _options(body: dict[str, Any]) -> Options:
    return Options(
        timeout_mins=reading.whole(body.get("timeout_mins") or None, "timeout_mins", least=1),
        disable_rollback=reading.flag(body.get("disable_rollback"), "disable_rollback"),
        tags=reading.tags(body.get("tags")),
    )


def _filter(call: Call) -> Filter:
    equal: dict[str, list[str]] = {}
    for key, column in _FILTERS.items():
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
        limit=reading.whole(call.query.get("limit"), "limit"),
        marker=call.query.get("marker"),
        sort_keys=[key for said in call.query.getlist("sort_keys") for key in said.split(",") if key],
        descending=None if direction is None else direction == "desc",
    )


def _asked(call: Call, name: str) -> bool:
    return bool(reading.flag(call.query.get(name), name))
