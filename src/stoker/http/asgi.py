"""The ASGI application: finds the route, applies its access rule, runs its handler and sends the response."""

from __future__ import annotations

import os
import time
from collections.abc import Callable, Iterable, Mapping

import structlog
from starlette.requests import ClientDisconnect, Request
from starlette.responses import Response as StarletteResponse
from starlette.types import ASGIApp, Receive, Scope, Send

from stoker.deployments import write_audit
from stoker.http import errors, request_body, security_headers
from stoker.http.access import AuthResult, only_reads
from stoker.http.app import App
from stoker.http.client_address import client_address
from stoker.http.request_body import BodyBudget, Client
from stoker.http.request_context import RequestContext, Response, Route, without_credentials
from stoker.http.router import Router
from stoker.http.signals import SIGNALS
from stoker.http.threads import in_thread
from stoker.metrics import Metrics
from stoker.model.errors import DeploymentRefused, Invalid, StokerError, WriteRefused
from stoker.policy import authorizer

#: The key of the route in the scope of a request.
_ROUTE = "stoker.route"
_log = structlog.get_logger("stoker.http")


def create_asgi_app(app: App, routes: Iterable[Route]) -> ASGIApp:
    """Return the ASGI application that serves ``routes``."""
    router, budget = Router(routes), BodyBudget()

    async def serve(scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http":
            return
        request = Request(scope, receive)
        request_id = _new_request_id()
        structlog.contextvars.bind_contextvars(request_id=request_id)
        began = time.monotonic()
        try:
            response = await _answer(router, app, budget, request)
        except ClientDisconnect:
            return
        seconds = time.monotonic() - began
        _measure(app.store.metrics, scope, response.status_code, seconds)
        if app.settings.log_requests:
            _log.info("request.answered", **_line(request), status=response.status_code, seconds=round(seconds, 4))
        response.raw_headers.append((b"x-openstack-request-id", request_id.encode()))
        if scope["path"].startswith(errors.OBJECTS):
            response.headers["x-trans-id"] = f"tx{request_id.removeprefix('req-')}"
        security_headers.add(response, scope["path"])
        await response(scope, receive, send)

    return serve


def _new_request_id() -> str:
    """Return ``req-`` and a random UUID, as OpenStack's services do. ``uuid.uuid4`` takes three times as long."""
    digits = os.urandom(16).hex()
    return f"req-{digits[:8]}-{digits[8:12]}-4{digits[13:16]}-8{digits[17:20]}-{digits[20:]}"


def _measure(metrics: Metrics, scope: Scope, status: int, seconds: float) -> None:
    route: Route | None = scope.get(_ROUTE)
    # Any word may be a method, and a label with any value would fill the memory: without a route, none is counted.
    metrics.count_request(route.verb if route else "", route.path if route else "", status)
    if route is not None and not route.is_coroutine:
        metrics.time_handler(route.path, seconds)


async def _answer(router: Router, app: App, budget: BodyBudget, request: Request) -> StarletteResponse:
    path: str = request.scope["path"]
    verb: str = request.scope["method"]
    try:
        try:
            return await _dispatch(router, app, budget, request, verb, path)
        except DeploymentRefused as refused:
            await in_thread(authorizer.record_denial, app.store, refused)
            raise
    except StokerError as error:
        return errors.of(path, error, app.settings.identity_url).to_starlette()
    except ClientDisconnect:
        raise
    except Exception:
        _log.exception("request.failed", **_line(request))
        return errors.reply(path, 500, "InternalError", None).to_starlette()


async def _dispatch(
    router: Router, app: App, budget: BodyBudget, request: Request, verb: str, path: str
) -> StarletteResponse:
    """Raises StokerError."""
    if "\0" in path:
        return _no_route(verb, path, frozenset()).to_starlette()
    if b"%00" in request.scope["query_string"]:
        raise Invalid("the query holds a NUL character, and so does nothing that could be asked for")
    route, values, verbs = router.find(verb, path)
    if route is None:
        return _no_route(verb, path, verbs).to_starlette()
    request.scope[_ROUTE] = route
    admitted = await route.access.authenticate(request, values, app)
    limit = route.body_limit if isinstance(route.body_limit, int) else route.body_limit(app.settings)
    client = _client(admitted, values, request, app)
    start = route.check_start
    check_start = None if start is None else lambda beginning: start(request, beginning, app)
    with budget.lease(client) as lease:
        context = RequestContext(
            raw=request,
            body=await request_body.read(request, limit, lease, check_start),
            path=values,
            app=app,
            principal=admitted.principal,
            agent=admitted.agent,
            relay_id=admitted.relay,
            only=admitted.only,
            project_id=admitted.project,
            limited_to=admitted.limited_to,
            access=route.access,
            as_owner=admitted.as_owner,
        )
        try:
            if route.is_coroutine:
                return _response(await route.call(context), context)
            return await route.executor.run(client.key, _handle, route.call, context)
        except WriteRefused as refused:
            await in_thread(_audit, context, refused)
            raise


def _handle(handler: Callable[[RequestContext], Response], request: RequestContext) -> StarletteResponse:
    """Run the handler and encode the response. Runs on a thread, because encoding a large response takes long."""
    return _response(handler(request), request)


def _line(request: Request) -> dict[str, str]:
    """Return the method and the path for the log, without the token of a signal URL."""
    path: str = request.scope["path"]
    return {"method": request.scope["method"], "path": f"{SIGNALS}…" if path.startswith(SIGNALS) else path}


def _response(response: Response, request: RequestContext) -> StarletteResponse:
    if only_reads(request.principal) and not request.raw.scope["path"].startswith(errors.OBJECTS):
        response = without_credentials(response)
    return response.to_starlette()


def _client(admitted: AuthResult, values: Mapping[str, str], request: Request, app: App) -> Client:
    """Return the client whose share of threads and memory the request uses: a project, a server, or an address."""
    principal, program = admitted.principal, admitted.agent or admitted.relay
    if principal is not None or admitted.only is not None or program is not None:
        project = admitted.project or values.get("project") or (principal.project_id if principal else None)
        return Client(project or program or admitted.only or "", is_known=True)
    return Client(client_address(request, app.settings), is_known=False)


def _audit(request: RequestContext, refused: WriteRefused) -> None:
    """Record the refused write in a new transaction, because the request's transaction is rolled back."""
    who = request.principal.user_name if request.principal else None
    what = f"{request.raw.method} {refused.noun}"
    request.app.store.write(lambda tx: write_audit.record_refusal(tx, refused, actor=who, action=what))


def _no_route(verb: str, path: str, verbs: frozenset[str]) -> Response:
    if not verbs:
        return errors.reply(path, 404, "HTTPNotFound", "The resource could not be found.")
    allow = {"Allow": ", ".join(sorted(verbs))}
    if verb == "OPTIONS":
        return Response(204, headers=allow)
    return errors.reply(path, 405, "HTTPMethodNotAllowed", f"{verb} is not allowed here", allow)
