"""Reads and checks the bodies of requests about stacks, and prepares them for ``stacks``."""

from __future__ import annotations

import re
from typing import Any, NoReturn
from uuid import uuid4

import msgspec

from stoker.hot.bounds import MAX_ENVIRONMENT, MAX_TEMPLATE
from stoker.http import params
from stoker.http.heat import stack_lookup
from stoker.http.json_body import Part, decode, decode_texts, json_size, split
from stoker.http.request_context import RequestContext
from stoker.model.errors import Invalid, NotSupported, RequestLimitExceeded
from stoker.model.stack import Source, Stack
from stoker.stacks.operations import Options
from stoker.stacks.templates.prepare import Identity, ResolvedStack, StackRequest, prepare, prepare_change
from stoker.store import stacks

#: Maximum bytes of the JSON text of a body's members, except ``files``. Other members have the limit of an environment.
_PARTS = {"template": MAX_TEMPLATE, "environment": MAX_ENVIRONMENT, "adopt_stack_data": 8 * 1024 * 1024}
_BODY = "the request's body"
_NAME = re.compile(r"[a-zA-Z][a-zA-Z0-9_.-]{0,254}")


class _StackBody(msgspec.Struct):
    """All members of a request with a template, for all routes."""

    stack_name: Part = msgspec.UNSET
    template: Part = msgspec.UNSET
    template_url: Part = msgspec.UNSET
    files: Part = msgspec.UNSET
    environment: Part = msgspec.UNSET
    environment_files: Part = msgspec.UNSET
    parameters: Part = msgspec.UNSET
    clear_parameters: Part = msgspec.UNSET
    adopt_stack_data: Part = msgspec.UNSET
    timeout_mins: Part = msgspec.UNSET
    disable_rollback: Part = msgspec.UNSET
    tags: Part = msgspec.UNSET


def body(request: RequestContext) -> dict[str, Any]:
    """
    Return the request's JSON object.

    The size of each member is checked before the member is decoded. A template in JSON has the same limit as a template
    in text. Raises Invalid or RequestLimitExceeded.
    """
    parts = split(request.body, _StackBody, _BODY)
    return {part: _part(part, raw) for part, raw in parts.items()}


def _part(part: str, raw: bytes) -> Any:
    if part == "files":
        return decode_texts(raw, part)
    most = _PARTS.get(part, MAX_ENVIRONMENT)
    # JSON may need six bytes for a character of a string. The parser of the text checks its size again.
    if len(raw) > (6 * most + 2 if raw.startswith(b'"') else most):
        _refuse_size(part, len(raw), most)
    return decode(raw, _BODY)


def _refuse_size(part: str, size: int, most: int) -> NoReturn:
    raise RequestLimitExceeded(
        f"Request limit exceeded: {part.capitalize()} size ({size} bytes) exceeds maximum allowed size ({most} bytes)."
    )


def name(said: Any) -> str:
    """Return the name of a stack. Raises Invalid."""
    if said is None:
        raise Invalid("No stack name specified")
    if not isinstance(said, str) or not _NAME.fullmatch(said):
        raise Invalid(
            f"Invalid stack name {said!r} must contain only alphanumeric or '_-.' characters, "
            "must start with alpha and must be 255 characters or less."
        )
    return said


def stack_request(body: dict[str, Any]) -> StackRequest:
    """Return the template with its files, environment and parameters. Raises NotSupported for ``template_url``."""
    if body.get("template") is None and body.get("template_url") is not None:
        raise NotSupported("template_url is not supported: send the template itself")
    return StackRequest(
        template=body.get("template"),
        files=body.get("files"),
        environment=body.get("environment"),
        environment_files=body.get("environment_files"),
        parameters=body.get("parameters"),
    )


def options(body: dict[str, Any]) -> Options:
    """Return the options of a stack. Raises Invalid."""
    return Options(
        timeout_mins=params.whole(body.get("timeout_mins") or None, "timeout_mins", least=1),
        disable_rollback=params.flag(body.get("disable_rollback"), "disable_rollback"),
        tags=params.tags(body.get("tags")),
    )


def new(request: RequestContext, body: dict[str, Any], stack_name: str) -> tuple[Identity, ResolvedStack]:
    """Prepare a new stack. Raises Invalid."""
    identity = Identity(str(uuid4()), stack_name, request.project)
    return identity, prepare(request.app.engine, stack_request(body), identity)


def for_replacement(request: RequestContext, body: dict[str, Any]) -> tuple[Stack, ResolvedStack, Options]:
    """Prepare a PUT, which replaces the whole stack: omitted members return to their defaults."""
    if body.get("template") is None:
        raise Invalid("No template specified")
    stack, _ = find_stack(request)
    said = options(body)
    tags = said.tags if said.tags is not None else ()
    resolved = prepare(request.app.engine, stack_request(body), _identity(stack))
    return stack, resolved, Options(timeout_mins=said.timeout_mins, disable_rollback=said.disable_rollback, tags=tags)


def for_patch(request: RequestContext, body: dict[str, Any]) -> tuple[Stack, ResolvedStack, Options]:
    """Prepare a PATCH, which keeps omitted members."""
    stack, source = find_stack(request)
    cleared = body.get("clear_parameters") or []
    if not isinstance(cleared, list):
        raise Invalid("clear_parameters must be a list of names")
    resolved = prepare_change(request.app.engine, stack_request(body), _identity(stack), source, map(str, cleared))
    return stack, resolved, options(body)


def find_stack(request: RequestContext) -> tuple[Stack, Source]:
    """Return the stack of the path and its template. Raises EntityNotFound, or NotSupported for a nested stack."""
    with request.app.store.read() as tx:
        found = stack_lookup.stack(tx, request, live=True)
        stack_lookup.refuse_nested(found)
        return found, stacks.source(tx, found.id)


def for_adoption(body: dict[str, Any]) -> dict[str, Any] | None:
    """
    Return the data of a stack to adopt, from a map or JSON text; None if the body has none.

    The template, environment and files of the data replace missing members of ``body``. Raises Invalid or
    RequestLimitExceeded.
    """
    said = body.get("adopt_stack_data")
    if said is None:
        return None
    data = decode(said.encode(), "adopt_stack_data") if isinstance(said, str) else said
    if not isinstance(data, dict):
        raise Invalid("adopt_stack_data must be a map")
    if isinstance(data.get("template"), dict) and (size := json_size(data["template"])) > MAX_TEMPLATE:
        _refuse_size("template", size, MAX_TEMPLATE)
    for part in ("template", "environment", "files"):
        if body.get(part) is None:
            body[part] = data.get(part)
    if body.get("tags") is None and isinstance(data.get("tags"), list):
        body["tags"] = ",".join(map(str, data["tags"]))
    return data


def _identity(stack: Stack) -> Identity:
    return Identity(stack.id, stack.name, stack.project_id)
