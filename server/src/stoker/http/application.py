"""
The ASGI application: finds the route, applies its access rule, runs its handler and sends the response.

A tree of segments finds routes. Starlette's router tries one route after the other: with some 80 routes, this costs
more than the rest of a cached response (measured: 0.1 ms, against 0.004 ms here).
"""

from __future__ import annotations

import logging
import os
import time
from collections.abc import Iterable, Mapping
from functools import partial

import structlog
from prometheus_client import Counter, Histogram
from starlette.requests import ClientDisconnect, Request
from starlette.responses import Response as StarletteResponse
from starlette.types import Receive, Scope, Send

from stoker.http import audit_trail
from stoker.http.access import SIGNALS, TOKEN, Attempt, Caller
from stoker.http.api import Api, Failure, Route, describe
from stoker.http.app import App
from stoker.http.request import Bodies, Client, RequestContext, Response, client_address, without_credentials
from stoker.http.threads import in_thread
from stoker.model.audit import Outcome
from stoker.model.errors import DeploymentRefused, Forbidden, Invalid, StokerError, WriteRefused
from stoker.policy import authorizer

#: The key of the route in the scope of a request.
_ROUTE = "stoker.route"
_WITHOUT_BODY = ("GET", "HEAD", "DELETE", "OPTIONS")
#: Browsers must not sniff responses. ``no-referrer`` keeps signed URLs out of the Referer header of linked sites.
_SECURITY_HEADERS = (
    (b"x-content-type-options", b"nosniff"),
    (b"referrer-policy", b"no-referrer"),
)
#: Responses of every API can contain tokens, keys, signed URLs or documents with secrets.
_NOT_KEPT = (b"cache-control", b"no-store")
_log = structlog.get_logger("stoker.http")
_levels = logging.getLogger("stoker.http")


class _Node:
    __slots__ = ("literal", "named", "routes", "swallowing")

    def __init__(self) -> None:
        self.literal: dict[str, _Node] = {}
        self.named: _Node | None = None
        #: Matches the rest of the path.
        self.swallowing: _Node | None = None
        self.routes: dict[str, tuple[Route, tuple[str, ...]]] = {}


class Router:
    """Finds routes by method and path. Raises ValueError if two routes have the same method and path."""

    def __init__(self, routes: Iterable[Route]) -> None:
        self._root = _Node()
        for route in routes:
            self._add(route)

    def find(self, verb: str, path: str) -> tuple[Route | None, Mapping[str, str], frozenset[str]]:
        """
        Return the route, the named segments of the path, and the methods that the path supports.

        The route is None if the path does not support ``verb``. Without a route and without methods, the path does not
        exist.
        """
        segments = path.strip("/").split("/")
        verbs: set[str] = set()
        # A literal segment takes precedence, but may have no match below it: a stack can have the name "preview".
        left: list[tuple[_Node, int, tuple[str, ...]]] = [(self._root, 0, ())]
        while left:
            node, depth, values = left.pop()
            if node.swallowing is not None and (
                depth < len(segments) or path.endswith("//")
            ):  # a name that consists of slashes only
                node, values = node.swallowing, (*values, _rest(path, depth))
            elif depth < len(segments):
                segment = segments[depth]
                if node.named is not None and segment:
                    left.append((node.named, depth + 1, (*values, segment)))
                following = node.literal.get(segment)
                if following is not None:
                    left.append((following, depth + 1, values))
                continue
            match = node.routes.get(verb)
            if match is not None:
                route, names = match
                return route, dict(zip(names, values, strict=True)), frozenset()
            verbs |= node.routes.keys()
        return None, {}, frozenset(verbs)

    def _add(self, route: Route) -> None:
        node, names = self._root, []
        for segment in route.path.strip("/").split("/"):
            if segment.endswith("*}"):
                names.append(segment[1:-2])
                node.swallowing = node.swallowing or _Node()
                node = node.swallowing
            elif segment.startswith("{"):
                names.append(segment[1:-1])
                node.named = node.named or _Node()
                node = node.named
            else:
                node = node.literal.setdefault(segment, _Node())
        if route.verb in node.routes:
            raise ValueError(f"two routes for {route.verb} {route.path}")
        node.routes[route.verb] = (route, tuple(names))


def _rest(path: str, depth: int) -> str:
    """Return the path after ``depth`` segments, with all its slashes."""
    return path.lstrip("/").split("/", depth)[depth]


class Application:
    """The ASGI application of several APIs, one of which has the empty prefix."""

    def __init__(self, app: App, apis: Iterable[Api]) -> None:
        self._app, self._metrics = app, app.metrics
        #: (method, route, status) → the counter, and route → the histogram: the lookup by labels takes three times as
        #: long.
        self._counters: dict[tuple[str, str, int], Counter] = {}
        self._durations: dict[str, Histogram] = {}
        self._apis = {api.prefix: api for api in apis}
        self._router = Router(route for api in self._apis.values() for route in api.routes)
        self._bodies = Bodies()

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http":
            return
        request, request_id = Request(scope, receive), _new_request_id()
        api = self._apis.get(scope["path"].lstrip("/").partition("/")[0]) or self._apis[""]
        structlog.contextvars.bind_contextvars(request_id=request_id)
        began = time.monotonic()
        try:
            response = await self._dispatch(api, request)
        except ClientDisconnect:
            return
        except Exception as error:
            response = await self._refuse(api, request, error)
        self._measure(scope, response.status_code, time.monotonic() - began)
        headers = response.raw_headers
        headers.append((b"x-openstack-request-id", request_id.encode()))
        if not api.has_documents and "cache-control" not in response.headers:
            headers.append(_NOT_KEPT)
        headers.append((b"content-security-policy", api.content_policy.encode()))
        headers.extend(_SECURITY_HEADERS)
        await response(scope, receive, send)

    def _measure(self, scope: Scope, status: int, seconds: float) -> None:
        route: Route | None = scope.get(_ROUTE)
        # Any word may be a method, and a label with any value would fill the memory.
        verb, path = ("", "") if route is None else (route.verb, route.path)
        counter = self._counters.get((verb, path, status))
        if counter is None:
            counter = self._counters[verb, path, status] = self._metrics.requests.labels(verb, path, str(status))
        counter.inc()
        if route is not None and not route.is_coroutine and (handlers := self._metrics.handler_seconds) is not None:
            duration = self._durations.get(path)
            if duration is None:
                duration = self._durations[path] = handlers.labels(_api_of(path))
            duration.observe(seconds)
        if _levels.isEnabledFor(logging.DEBUG):
            _log.debug("request.answered", **_line(scope), status=status, seconds=round(seconds, 4))

    async def _refuse(self, api: Api, request: Request, error: Exception) -> StarletteResponse:
        """Return the response to a request that has raised an error."""
        if isinstance(error, Forbidden):
            try:
                await _record_refusal(self._app, request, error)
            except Exception as failure:
                error = failure
        if not isinstance(error, StokerError):
            _log.error("request.failed", **_line(request.scope), exc_info=error)
        return api.render(describe(error, self._app.settings.identity_url)).to_starlette()

    async def _dispatch(self, api: Api, request: Request) -> StarletteResponse:
        """Raises StokerError."""
        scope, app = request.scope, self._app
        if api.translate is not None:
            await api.translate(scope, app)
        verb, path = scope["method"], scope["path"]
        if b"%00" in scope["query_string"]:
            raise Invalid("the query holds a NUL character, and so does nothing that could be asked for")
        route, values, verbs = self._router.find(verb, path) if "\0" not in path else (None, {}, frozenset())
        if route is None:
            return _no_route(api, verb, verbs).to_starlette()
        scope[_ROUTE] = route
        caller = await route.access.authenticate(request, values, app)
        client = _client(caller, values, request, app)
        body = b"" if verb in _WITHOUT_BODY else await self._bodies.read(request, client, route.body_limit)
        context = RequestContext(request, body, values, app, caller, route)
        try:
            if route.is_coroutine:
                return _encode(await route.call(context), context, api)
            # The thread also encodes the response: a large one takes long.
            return await route.limit.run(client.key, lambda: _encode(route.call(context), context, api))
        finally:
            if body:
                self._bodies.release(client, len(body))


def _new_request_id() -> str:
    """Return ``req-`` and a random UUID, as OpenStack's services do. ``uuid.uuid4`` takes three times as long."""
    digits = os.urandom(16).hex()
    return f"req-{digits[:8]}-{digits[8:12]}-4{digits[13:16]}-8{digits[17:20]}-{digits[20:]}"


def _line(scope: Scope) -> dict[str, str]:
    """Return the method and the path for the log, without the token of a signal URL."""
    path: str = scope["path"]
    return {"method": scope["method"], "path": f"{SIGNALS}…" if path.startswith(SIGNALS) else path}


def _api_of(path: str) -> str:
    """Return the name of a route's API by its first segment."""
    first = path.split("/", 2)[1]
    return {"v1": "heat", "object-store": "objects"}.get(first, first) or "site"


def _encode(response: Response, request: RequestContext, api: Api) -> StarletteResponse:
    if not api.has_documents and request.caller.only_reads:
        response = without_credentials(response)
    return response.to_starlette()


def _client(caller: Caller, values: Mapping[str, str], request: Request, app: App) -> Client:
    """Return the client whose share of threads and memory the request uses: a project, a server, or an address."""
    principal, single = caller.principal, caller.server or caller.relay or caller.resource
    if principal is not None or single is not None:
        return Client(caller.project or values.get("project") or single or "", is_known=True)
    return Client(client_address(request, app.settings), is_known=False)


async def _record_refusal(app: App, request: Request, refused: Forbidden) -> None:
    """
    Record a refused run or change in the audit log, in a transaction of its own, because the request's is rolled back.

    Refused reads leave no entry, because they may be frequent.
    """
    try:
        caller = await TOKEN.find(Attempt(request, {}, app))
    except StokerError:
        caller = None
    principal, verb = None if caller is None else caller.principal, request.scope["method"]
    if isinstance(refused, DeploymentRefused):
        await in_thread(authorizer.record_denial, app.store, refused)
    elif isinstance(refused, WriteRefused):
        actor, action = None if principal is None else principal.user_name, f"{verb} {refused.noun}"
        record = partial(authorizer.record_refused_write, refused=refused, actor=actor, action=action)
        await in_thread(app.store.write, record)
    elif principal is not None and verb not in ("GET", "HEAD", "OPTIONS"):  # others have no name
        action = f"{verb} {request.scope['path']}"
        await in_thread(audit_trail.record_user, app.store, principal, action, Outcome.REFUSED, refused.message)


def _no_route(api: Api, verb: str, verbs: frozenset[str]) -> Response:
    if not verbs:
        return api.render(Failure(404, "HTTPNotFound", "The resource could not be found."))
    allow = {"Allow": ", ".join(sorted(verbs))}
    if verb == "OPTIONS":
        return Response(204, headers=allow)
    return api.render(Failure(405, "HTTPMethodNotAllowed", f"{verb} is not allowed here", allow))
