"""
The console's way to the REST API: a request to ``/console/api/v1/...`` becomes the request to ``/v1/...`` with a token.

The same holds for the identity API and for the metrics, whose paths name no project: a header of the request does.

The session counts only together with its CSRF token in a header, whatever the method: no other site can send this
header, and no link or form can. Without both, the request has no credential, and the API answers as to any such
request.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

from starlette.requests import Request
from starlette.types import Scope

from stoker.http.console.session import CSRF_HEADER, Sessions, is_equal
from stoker.http.threads import in_thread
from stoker.model.errors import Unauthorized

if TYPE_CHECKING:
    from stoker.http.app import App

_PREFIX = "/console/api"
_PROJECT_PATHS = f"{_PREFIX}/v1/"
#: Log-ins and tokens are left out: tokens never leave the server.
_OTHER_PATHS = re.compile(rf"{_PREFIX}/(identity/v3/(?!auth/).*|metrics)")
_PROJECT_HEADER = "x-stoker-project"
#: Headers of credentials, which the session replaces.
_CREDENTIALS = (b"x-auth-token", b"authorization", b"cookie", CSRF_HEADER.encode(), _PROJECT_HEADER.encode())


async def translate(scope: Scope, app: App) -> None:
    """
    Change a request of the console's scripts to the one to the REST API, with the session's token as only credential.

    Leaves other requests as they are. Raises Unavailable.
    """
    path: str = scope["path"]
    request = Request(scope)
    if path.startswith(_PROJECT_PATHS):
        project_id = path.removeprefix(_PROJECT_PATHS).partition("/")[0]
    elif _OTHER_PATHS.fullmatch(path):
        project_id = request.headers.get(_PROJECT_HEADER, "")
    else:
        return
    token = await _find_token(request, project_id, app.sessions)
    path, raw_path = path.removeprefix(_PREFIX), scope["raw_path"].removeprefix(_PREFIX.encode())
    headers = [(name, value) for name, value in scope["headers"] if name not in _CREDENTIALS]
    if token is not None:
        headers.append((b"x-auth-token", token.encode()))
    scope.update(path=path, raw_path=raw_path, headers=headers)


async def _find_token(request: Request, project_id: str, sessions: Sessions) -> str | None:
    """Return the session's token for a project; None without a session. Raises Unavailable."""
    session = sessions.find(request)
    if session is None or not is_equal(request.headers.get(CSRF_HEADER, ""), session.csrf):
        return None
    token = sessions.get_entered(session, project_id)
    if token is not None:
        return token
    try:
        return (await in_thread(sessions.enter, session, project_id))[0]
    except Unauthorized:
        # The session's token is not valid, or its user has no role in the project: the API answers 401 or 403.
        return session.token
