"""
The console's way to the REST API: a request to ``/console/api/v1/...`` is the request to ``/v1/...`` with a token.

The session counts only together with its CSRF token in a header, whatever the method: no other site can send this
header, and no link or form can. Without both, the request has no credential, and the API answers as to any such
request.
"""

from __future__ import annotations

from starlette.requests import Request
from starlette.types import ASGIApp, Receive, Scope, Send

from stoker.http.api import describe, render
from stoker.http.console.session import CSRF_HEADER, Sessions, is_equal
from stoker.http.threads import in_thread
from stoker.model.errors import StokerError, Unauthorized

_PREFIX = "/console/api"
#: Headers of credentials, which the session replaces.
_CREDENTIALS = (b"x-auth-token", b"authorization", b"cookie", CSRF_HEADER.encode())


class Gateway:
    """An ASGI application that passes requests on to ``api``, those of the console with the token of their session."""

    def __init__(self, api: ASGIApp, sessions: Sessions) -> None:
        self._api, self._sessions = api, sessions

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Answer one request."""
        if scope["type"] == "http" and scope["path"].startswith(f"{_PREFIX}/v1/"):
            try:
                token = await self._find_token(Request(scope))
            except StokerError as error:
                response = render(describe(error, "")).to_starlette()
                response.headers["cache-control"] = "no-store"
                await response(scope, receive, send)
                return
            scope = _translate(scope, token)
        await self._api(scope, receive, send)

    async def _find_token(self, request: Request) -> str | None:
        """Return the token for the project in the request's path; None without a session. Raises StokerError."""
        session = self._sessions.find(request)
        if session is None or not is_equal(request.headers.get(CSRF_HEADER, ""), session.csrf):
            return None
        project_id = request.scope["path"].removeprefix(f"{_PREFIX}/v1/").partition("/")[0]
        token = self._sessions.get_entered(session, project_id)
        if token is not None:
            return token
        try:
            return (await in_thread(self._sessions.enter, session, project_id))[0]
        except Unauthorized:
            # The session's token is not valid, or its user has no role in the project: the API answers 401 or 403.
            return session.token


def _translate(scope: Scope, token: str | None) -> Scope:
    """Return the request to the REST API, with this token as its only credential."""
    path: str = scope["path"].removeprefix(_PREFIX)
    headers = [(name, value) for name, value in scope["headers"] if name not in _CREDENTIALS]
    if token is not None:
        headers.append((b"x-auth-token", token.encode()))
    return {**scope, "path": path, "raw_path": path.encode(), "headers": headers}
