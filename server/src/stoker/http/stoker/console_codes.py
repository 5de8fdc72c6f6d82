"""/v1/{project}/console_codes: one-time codes with which a browser signs in to the console (Stoker's own)."""

from __future__ import annotations

from typing import Annotated, Any

from msgspec import Meta

from stoker.http.console.session import CODE_LIFE
from stoker.http.contracts import Answer, Time, operation
from stoker.http.request import RequestContext
from stoker.model.errors import Forbidden, Unauthorized
from stoker.store import rows

_REFUSED_LOGIN = (
    "An application credential does not sign in to the console: log in with a user name and a password, or open the"
    " console and enter them there."
)


class ConsoleCode(Answer):
    code: Annotated[str, Meta(description="Open /console/enter#code=CODE in a browser. Valid once, and for a minute")]
    expires_at: Time


@operation(201, {"console_code": ConsoleCode}, body_optional=True)
def create(request: RequestContext) -> dict[str, Any]:
    """
    Create a code with which a browser signs in to the console as this user.

    The session ends with the token of the request. Raises Forbidden for application credentials.
    """
    if request.user.application_credential_id is not None:
        raise Forbidden(_REFUSED_LOGIN)
    now = request.app.store.clock.now()
    try:
        code = request.app.sessions.create_code(request.token, request.project, now)
    except Unauthorized:
        raise Forbidden(_REFUSED_LOGIN) from None
    return {"console_code": ConsoleCode(code=code, expires_at=rows.heat_time(now + CODE_LIFE))}
