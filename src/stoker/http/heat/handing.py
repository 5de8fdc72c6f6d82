"""What requests about stacks hand in: the words they share, checked and ready for ``stacks``."""

from __future__ import annotations

import re
from typing import Any
from uuid import uuid4

from stoker.http import reading
from stoker.http.call import Call
from stoker.http.decoding import decoded
from stoker.http.heat import finding
from stoker.model.errors import Invalid, NotSupported
from stoker.model.stack import Source, Stack
from stoker.stacks.operations import Options
from stoker.stacks.prepare import Handed, Identity, Prepared, prepare, prepare_change
from stoker.store import stacks

_NAME = re.compile(r"[a-zA-Z][a-zA-Z0-9_.-]{0,254}")


def name(said: Any) -> str:
    if said is None:
        raise Invalid("No stack name specified")
    if not isinstance(said, str) or not _NAME.fullmatch(said):
        raise Invalid(
            f"Invalid stack name {said!r} must contain only alphanumeric or '_-.' characters, "
            "must start with alpha and must be 255 characters or less."
        )
    return said


def handed(body: dict[str, Any]) -> Handed:
    if body.get("template") is None and body.get("template_url") is not None:
        raise NotSupported("template_url is not supported: send the template itself")
    return Handed(
        template=body.get("template"),
        files=body.get("files"),
        environment=body.get("environment"),
        environment_files=body.get("environment_files"),
        parameters=body.get("parameters"),
    )


def options(body: dict[str, Any]) -> Options:
    return Options(
        timeout_mins=reading.whole(body.get("timeout_mins") or None, "timeout_mins", least=1),
        disable_rollback=reading.flag(body.get("disable_rollback"), "disable_rollback"),
        tags=reading.tags(body.get("tags")),
    )


def new(call: Call, body: dict[str, Any], stack_name: str) -> tuple[Identity, Prepared]:
    """A stack that is not there yet."""
    identity = Identity(str(uuid4()), stack_name, call.project)
    return identity, prepare(call.services.engine, handed(body), identity)


def replacing(call: Call, body: dict[str, Any]) -> tuple[Stack, Prepared, Options]:
    """PUT: the whole stack anew; what is not said goes back to its default."""
    if body.get("template") is None:
        raise Invalid("No template specified")
    stack, _ = existing(call)
    said = options(body)
    tags = said.tags if said.tags is not None else ()
    prepared = prepare(call.services.engine, handed(body), _identity(stack))
    return stack, prepared, Options(timeout_mins=said.timeout_mins, disable_rollback=said.disable_rollback, tags=tags)


def changing(call: Call, body: dict[str, Any]) -> tuple[Stack, Prepared, Options]:
    """PATCH: what is not said stays."""
    stack, source = existing(call)
    cleared = body.get("clear_parameters") or []
    if not isinstance(cleared, list):
        raise Invalid("clear_parameters must be a list of names")
    prepared = prepare_change(call.services.engine, handed(body), _identity(stack), source, map(str, cleared))
    return stack, prepared, options(body)


def existing(call: Call) -> tuple[Stack, Source]:
    with call.services.store.read() as tx:
        found = finding.stack(tx, call, live=True)
        finding.refuse_nested(found)
        return found, stacks.source(tx, found.id)


def adopting(body: dict[str, Any]) -> dict[str, Any] | None:
    """The data to adopt, a map or its JSON text; its template and environment stand in for those not given."""
    said = body.get("adopt_stack_data")
    if said is None:
        return None
    data = decoded(said.encode(), "adopt_stack_data") if isinstance(said, str) else said
    if not isinstance(data, dict):
        raise Invalid("adopt_stack_data must be a map")
    for part in ("template", "environment", "files"):
        if body.get(part) is None:
            body[part] = data.get(part)
    if body.get("tags") is None and isinstance(data.get("tags"), list):
        body["tags"] = ",".join(map(str, data["tags"]))
    return data


def _identity(stack: Stack) -> Identity:
    return Identity(stack.id, stack.name, stack.project_id)
