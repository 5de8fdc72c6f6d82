"""
The relay's API: the routes of Stoker's agent API, /healthz and /metrics.

The server's own HTTP layer (``stoker.http.application``) finds routes, checks keys and reads bodies, with the server's
limits. Paths are taken literally: the relay passes on only what the route table names.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import Any, cast

from prometheus_client.exposition import CONTENT_TYPE_LATEST
from starlette.types import ASGIApp, Receive, Scope, Send

from stoker.http.access import AGENT_KEY, ANY_AGENT_KEY, MONITORING_TOKEN, PUBLIC, Access, Credential
from stoker.http.agent import ROUTES
from stoker.http.agent.document import DocumentQuery
from stoker.http.api import Api, Failure, Route, render
from stoker.http.app import App
from stoker.http.application import Application
from stoker.http.contracts import operation
from stoker.http.hold import Waiters
from stoker.http.request import RequestContext, Response, client_address, matches_tag
from stoker.settings import Settings
from stoker_relay.center import Center
from stoker_relay.downloads import Downloads
from stoker_relay.keys import Keys, key_of
from stoker_relay.metrics import RelayMetrics
from stoker_relay.polls import Polls

#: Segments of letters, digits and a few signs, none of which is "." or "..". Nothing is encoded, and none is empty.
_LITERAL = re.compile(rb"(/(?!\.\.?(/|$))[A-Za-z0-9._-]+)+")
_PASSED = ("authorization", "content-type", "x-stoker-agent", "if-none-match")
#: Seconds after which an agent asks again whether its server is approved. A held question would take a connection to
#: the center.
_APPROVAL_SECONDS = 5


class RelayApi:
    """
    The handlers of the relay.

    ``settings``, ``metrics`` and ``waiters`` are what the server's HTTP layer uses of an application.
    """

    def __init__(self, settings: Settings, center: Center, metrics: RelayMetrics) -> None:
        self.settings = settings
        self.metrics = metrics
        self.keys = Keys(center, settings)
        self.polls = Polls(lambda request: self._send(request, "/agent/v1/document?wait=0"))
        self._center = center
        self._downloads = Downloads()
        metrics.watch("center_up", "Whether the central Stoker answered last.", lambda: center.problem is None)
        metrics.watch("held_polls", "Open polls of agents.", lambda: len(self.polls))
        metrics.watch("agents", "Agents that poll.", self.polls.count_agents)

    @property
    def waiters(self) -> Waiters:
        """The open polls, which end when the relay stops."""
        return self.polls.waiters

    def list_routes(self) -> list[Route]:
        """Return the routes: those of the agent API, with the central Stoker's limits, and the relay's own two."""
        special: dict[str, Callable[..., Any]] = {
            "/agent/v1/document": self.poll,
            "/agent/v1/approval": self.approval,
            "/agent/v1/hooks/{sha256}": self.download,
            "/agent/v1/stoker-agent.pyz": self.download,
            "/agent/v1/install": self.install_script,
        }
        routes = [
            Route("GET", "/healthz", PUBLIC, self.health),
            Route("GET", "/metrics", Access(MONITORING_TOKEN), self.show_metrics),
        ]
        agents = Access(Credential(AGENT_KEY.scheme, self.keys.find))
        for route in ROUTES:
            access = agents if route.access.credentials[0] in (AGENT_KEY, ANY_AGENT_KEY) else PUBLIC
            handler = special.get(route.path, self.forward)
            routes.append(Route(route.verb, route.path, access, handler, route.body_limit))
        return routes

    async def forward(self, request: RequestContext) -> Response:
        """Pass a request on to the central Stoker. Raises CenterAway."""
        return await self._send(request, _target(request))

    @operation(200)
    async def poll(self, request: RequestContext, query: DocumentQuery) -> Response:
        """Hold a poll of an agent's document."""
        return await self.polls.poll(request, query.wait)

    async def approval(self, request: RequestContext) -> Response:
        """Return at once whether the server is approved, and when to ask again if it is not."""
        response = await self._send(request, "/agent/v1/approval?wait=0")
        if response.status != 200 or b"PENDING" not in response.content:
            return response
        return Response(200, response.content, {**response.headers, "retry-after": str(_APPROVAL_SECONDS)})

    async def download(self, request: RequestContext) -> Response:
        """Return the agent's program or a hook."""
        path: str = request.raw.scope["path"]
        return _unless_matched(request, await self._downloads.get(path, lambda tag: self._send(request, path, tag)))

    async def install_script(self, request: RequestContext) -> Response:
        """Return the install script with the URL of this relay."""

        async def fetch(tag: str) -> Response:
            return await self._center.send_own("GET", "/relay/v1/install", {"if-none-match": tag} if tag else {})

        return _unless_matched(request, await self._downloads.get("install", fetch))

    async def health(self, _: RequestContext) -> Response:
        """Return whether the relay reaches the central Stoker, and its number of agents and open polls."""
        problem = self._center.problem
        health = {"status": "ok", "center_reachable": problem is None, "center_problem": problem}
        return Response(200, {**health, "agents": self.polls.count_agents(), "polls": len(self.polls)})

    async def show_metrics(self, _: RequestContext) -> Response:
        """Return the metrics."""
        return Response(200, self.metrics.render(), media_type=CONTENT_TYPE_LATEST)

    async def _send(self, request: RequestContext, target: str, tag: str | None = None) -> Response:
        """
        Send a request with the agent's headers and address. Raises CenterAway.

        ``tag``: If-None-Match instead of the agent's own; empty: without one.
        """
        raw = request.raw
        headers = {name: raw.headers[name] for name in _PASSED if name in raw.headers}
        headers["x-forwarded-for"] = client_address(raw, self.settings)
        if tag is not None:
            headers["if-none-match"] = tag
        headers = {name: value for name, value in headers.items() if value}
        response = await self._center.send(
            raw.method, target, headers, request.body, is_known=request.caller.server is not None
        )
        if response.status == 401 and request.caller.server is not None:
            self.keys.forget(key_of(raw))
        return response


def create_relay_app(api: RelayApi) -> ASGIApp:
    """Return the ASGI application of a relay."""
    # The HTTP layer passes the application to access rules and handlers, which are the relay's own.
    inner = Application(cast(App, api), [Api("", api.list_routes())])

    async def serve(scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] == "http" and not _LITERAL.fullmatch(scope["raw_path"]):
            refusal = render(Failure(404, "HTTPNotFound", "The resource could not be found."))
            await refusal.to_starlette()(scope, receive, send)
        else:
            await inner(scope, receive, send)

    return serve


def _target(request: RequestContext) -> str:
    """Return the path and the query as the agent sent them."""
    query: bytes = request.raw.scope["query_string"]
    path: str = request.raw.scope["path"]
    return f"{path}?{query.decode('latin-1')}" if query else path


def _unless_matched(request: RequestContext, response: Response) -> Response:
    """Return the response, or 304 if the agent has the file."""
    tag = response.headers.get("etag", "").strip('"')
    if response.status == 200 and tag and matches_tag(request.raw.headers.get("if-none-match", ""), tag):
        return Response(304, headers={"etag": response.headers["etag"]})
    return response
