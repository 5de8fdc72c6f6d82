"""
Sessions of browsers: a cookie that contains the user's token, encrypted, so that any process can read it.

A browser cannot read the cookie, and sends it below the console's path only. The token has no project: each request
names its project in the path, and uses a token that this process has requested for the project. These tokens never
leave the server, so two projects in two tabs do not mix.

A session counts only together with its CSRF token in a header, whatever the method: no other site can send this header,
and no link or form can.
"""

from __future__ import annotations

import base64
import hashlib
import hmac
import re
import secrets
from datetime import datetime, timedelta
from http.cookies import CookieError, SimpleCookie
from typing import TYPE_CHECKING, NamedTuple

from cryptography.fernet import Fernet, InvalidToken
from starlette.requests import Request
from starlette.types import Scope

from stoker.bounded_dict import BoundedDict
from stoker.http.threads import in_thread
from stoker.identity.authentication import Logins, TokenCheck
from stoker.model.errors import Unauthorized
from stoker.model.principal import Principal

if TYPE_CHECKING:
    from stoker.http.app import App

#: The header of the console's requests with the session's CSRF token.
CSRF_HEADER = "x-stoker-csrf"
_COOKIE, _LOGIN_COOKIE = "stoker-console", "stoker-console-login"
_PREFIX = "/console/api"
_PROJECT_PATHS = f"{_PREFIX}/v1/"
#: Log-ins and tokens are left out: tokens never leave the server.
_OTHER_PATHS = re.compile(rf"{_PREFIX}/(identity/v3/(?!auth/).*|metrics)")
_PROJECT_HEADER = "x-stoker-project"
#: Headers of credentials, which the session replaces.
_CREDENTIALS = (b"x-auth-token", b"authorization", b"cookie", CSRF_HEADER.encode(), _PROJECT_HEADER.encode())
#: Maximum number of project tokens to remember.
_REMEMBERED = 10_000


class Session(NamedTuple):
    """A user's token without a project, and the CSRF token of the session's requests."""

    token: str
    csrf: str


#: How long a one-time code is valid.
CODE_LIFE = timedelta(minutes=1)


class Code(NamedTuple):
    """What a one-time code contains: a user's token without a project, and the project that the browser opens."""

    token: str
    project_id: str
    #: The hash by which all processes of the site know that the code was used.
    hash: str


class Sessions:
    """Creates and reads sessions. ``secret`` is the site secret, so sessions are valid in all processes of the site."""

    def __init__(self, secret: bytes, logins: Logins, tokens: TokenCheck) -> None:
        self.logins = logins
        self._tokens = tokens
        self._fernet = _encryption(secret, b"stoker console sessions")
        self._codes = _encryption(secret, b"stoker console codes")
        self._key = hmac.digest(secret, b"stoker console requests", hashlib.sha256)
        #: The token of a project, by the session's token and the project.
        self._entered: BoundedDict[tuple[str, str], str] = BoundedDict(_REMEMBERED)

    def find(self, request: Request) -> Session | None:
        """Return the session of the request's cookie, whose token may have expired; None without a valid cookie."""
        try:
            token = self._fernet.decrypt(_read_cookie(request, _COOKIE)).decode()
        except InvalidToken:
            return None
        return self.create(token)

    def create(self, token: str) -> Session:
        """Return the session of a token."""
        return Session(token, self._sign(token))

    def cookie_of(self, session: Session, *, is_secure: bool) -> str:
        """Return the value of the header Set-Cookie that gives the session to a browser."""
        return _set_cookie(_COOKIE, self._fernet.encrypt(session.token.encode()).decode(), is_secure=is_secure)

    def create_code(self, token: str, project_id: str, now: datetime) -> str:
        """
        Return a code with which a browser signs in once as the user of a project's token.

        The code is the user's token without a project, encrypted, so no process stores it. Raises Unauthorized if the
        token can be used in its project only, and Unavailable.
        """
        content = f"{project_id} {self.logins.leave(token)}"
        return self._codes.encrypt_at_time(content.encode(), int(now.timestamp())).decode()

    def read_code(self, code: str, now: datetime) -> Code | None:
        """Return what a code contains; None if it is no code, or has expired."""
        try:
            content = self._codes.decrypt_at_time(code, int(CODE_LIFE.total_seconds()), int(now.timestamp())).decode()
        except (InvalidToken, ValueError):  # ValueError: characters that are not ASCII
            return None
        project_id, _, token = content.partition(" ")
        # By what it contains: the same code can be written in several ways.
        return Code(token, project_id, self._sign(content))

    def begin_login(self, *, is_secure: bool) -> tuple[str, str]:
        """
        Return the CSRF token of a sign-in form, and the value of the header Set-Cookie that goes with it.

        Without it, another site could sign a user in as somebody else.
        """
        nonce = secrets.token_urlsafe(16)
        return self._sign(nonce), _set_cookie(_LOGIN_COOKIE, nonce, is_secure=is_secure)

    def may_log_in(self, request: Request, csrf: str) -> bool:
        """Return whether ``csrf`` is the CSRF token of a sign-in form that this browser has received."""
        nonce = _read_cookie(request, _LOGIN_COOKIE)
        return bool(nonce) and is_equal(csrf, self._sign(nonce))

    def principal_of(self, session: Session) -> Principal:
        """Return the user of the session. Raises Unauthorized, Unavailable."""
        return self._tokens.get_cached(session.token) or self._tokens.validate(session.token)

    def get_entered(self, session: Session, project_id: str) -> str | None:
        """Return the token of the session for a project, without I/O; None if ``enter`` is needed."""
        token = self._entered.get((session.token, project_id))
        # The session's own token counts, too: it may be revoked while Keystone's tokens for projects are still valid.
        tokens = self._tokens
        return token if token and tokens.get_cached(token) and tokens.get_cached(session.token) else None

    def enter(self, session: Session, project_id: str) -> tuple[str, Principal]:
        """
        Return a token of the session for a project, with its principal.

        Raises Unauthorized if the session's token is not valid or the user has no role in the project, and Unavailable.
        """
        self._tokens.validate(session.token)
        key = session.token, project_id
        token = self._entered.get(key)
        if token:
            try:
                return token, self._tokens.validate(token)
            except Unauthorized:  # a changed role revokes Keystone's tokens
                self._entered.drop(key)
        token = self.logins.enter(session.token, project_id)
        self._entered.put(key, token)
        return token, self._tokens.validate(token)

    def _sign(self, text: str) -> str:
        return hmac.digest(self._key, text.encode(), hashlib.sha256).hex()


def _encryption(secret: bytes, purpose: bytes) -> Fernet:
    return Fernet(base64.urlsafe_b64encode(hmac.digest(secret, purpose, hashlib.sha256)))


def end_session(*, is_secure: bool) -> str:
    """Return the value of the header Set-Cookie that makes a browser forget its session."""
    return _set_cookie(_COOKIE, "", is_secure=is_secure) + "; Max-Age=0"


def is_equal(one: str, other: str) -> bool:
    """Return whether two texts are equal, in a time that does not depend on them."""
    return hmac.compare_digest(one.encode("utf-8", "surrogateescape"), other.encode())


def _set_cookie(name: str, value: str, *, is_secure: bool) -> str:
    # Without a path, the cookie's path is that of the sign-in page, also below the prefix of a proxy.
    return f"{name}={value}; HttpOnly; SameSite=Strict" + ("; Secure" if is_secure else "")


def _read_cookie(request: Request, name: str) -> str:
    """Return the value of a cookie; empty without it."""
    cookies: SimpleCookie = SimpleCookie()
    try:
        cookies.load(request.headers.get("cookie", "")[:8192])
    except CookieError:
        return ""
    morsel = cookies.get(name)
    return morsel.value if morsel else ""


async def translate(scope: Scope, app: App) -> None:
    """
    Change a request of the console's scripts to the one to the REST API, with the session's token as only credential.

    ``/console/api/v1/...`` becomes ``/v1/...``. The same holds for the identity API and for the metrics, whose paths
    name no project: a header does. Without a session and its CSRF token, the request has no credential, and the API
    answers as to any such request. Leaves other requests as they are. Raises Unavailable.
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
