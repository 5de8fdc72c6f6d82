"""The whole HTTP surface: find the row, ask its access rule, run its handler, answer."""

from __future__ import annotations

import inspect
import uuid
from collections.abc import Iterable

import structlog
from starlette.requests import ClientDisconnect, Request
from starlette.types import ASGIApp, Receive, Scope, Send

from stoker.deployments import gate
from stoker.http import errors
from stoker.http.call import Call, Reply, Route
from stoker.http.router import Router
from stoker.http.services import Services
from stoker.http.threads import in_thread
from stoker.model.errors import DeploymentRefused, Invalid, RequestLimitExceeded, StokerError

_log = structlog.get_logger("stoker.http")


def app(services: Services, routes: Iterable[Route]) -> ASGIApp:
    router = Router(routes)

    async def serve(scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http":
            return
        request = Request(scope, receive)
        request_id = f"req-{uuid.uuid4()}"
        try:
            reply = await _answer(router, services, request, request_id)
        except ClientDisconnect:
            return
        response = reply.response()
        response.headers["x-openstack-request-id"] = request_id
        if scope["path"].startswith(errors.OBJECTS):
            response.headers["x-trans-id"] = f"tx{request_id.removeprefix('req-')}"
        await response(scope, receive, send)

    return serve


async def _answer(router: Router, services: Services, request: Request, request_id: str) -> Reply:
    path: str = request.scope["path"]
    verb: str = request.scope["method"]
    try:
        try:
            return await _done(router, services, request, verb, path)
        except DeploymentRefused as refused:
            await in_thread(gate.keep, services.store, refused)
            raise
    except StokerError as error:
        return errors.of(path, error, services.settings.identity_url)
    except ClientDisconnect:
        raise
    except Exception:
        _log.exception("a request failed", verb=verb, path=path, request_id=request_id)
        return errors.reply(path, 500, "InternalError", None)


async def _done(router: Router, services: Services, request: Request, verb: str, path: str) -> Reply:
    """Raises StokerError."""
    if "\0" in path:
        return _no_route(verb, path, frozenset())
    if b"%00" in request.scope["query_string"]:
        raise Invalid("the query holds a NUL character, and so does nothing that could be asked for")
    route, values, verbs = router.find(verb, path)
    if route is None:
        return _no_route(verb, path, verbs)
    admitted = await route.access.admit(request, values, services)
    limit = route.body_limit if isinstance(route.body_limit, int) else route.body_limit(services.settings)
    call = Call(
        request=request,
        body=await _body(request, limit),
        path=values,
        services=services,
        principal=admitted.principal,
        agent=admitted.agent,
        only=admitted.only,
        admitted_to=admitted.project,
    )
    if inspect.iscoroutinefunction(route.handler):
        reply: Reply = await route.handler(call)
    else:
        reply = await in_thread(route.handler, call)  # type: ignore[arg-type]
    return reply


def _no_route(verb: str, path: str, verbs: frozenset[str]) -> Reply:
    if not verbs:
        return errors.reply(path, 404, "HTTPNotFound", "The resource could not be found.")
    allow = {"Allow": ", ".join(sorted(verbs))}
    if verb == "OPTIONS":
        return Reply(204, headers=allow)
    return errors.reply(path, 405, "HTTPMethodNotAllowed", f"{verb} is not allowed here", allow)


async def _body(request: Request, limit: int) -> bytes:
    """Raises RequestLimitExceeded as soon as the body is longer than ``limit``."""
    if request.method in ("GET", "HEAD", "DELETE", "OPTIONS"):
        return b""
    chunks, size = [], 0
    async for chunk in request.stream():
        size += len(chunk)
        if size > limit:
            raise RequestLimitExceeded(f"Request limit exceeded: the body is longer than {limit} bytes")
        chunks.append(chunk)
    return b"".join(chunks)
