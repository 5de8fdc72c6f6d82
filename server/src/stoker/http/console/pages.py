"""
The pages of the console that the server renders: sign-in, the choice of a project, and the start of the console.

/v1/{project}/console_codes creates one-time codes with which a browser signs in (Stoker's own).
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from contextlib import suppress
from html import escape
from string import Template
from typing import Annotated, Any
from urllib.parse import parse_qs, quote

from msgspec import Meta

from stoker import VERSION
from stoker.http import audit_trail
from stoker.http.access import Caller
from stoker.http.console import assets
from stoker.http.console.session import CODE_LIFE, CSRF_HEADER, Session, end_session, is_equal
from stoker.http.contracts import Answer, Time, operation
from stoker.http.request import RequestContext, Response, client_address
from stoker.identity.directory import DOMAIN_NAME
from stoker.model.audit import Outcome
from stoker.model.errors import Conflict, Forbidden, TooManyRequests, Unauthorized
from stoker.model.principal import Principal
from stoker.store import identity, rows

_HTML = "text/html; charset=utf-8"
_ABSENT = (
    "This installation of Stoker lacks the console: install a wheel that contains it, or run 'make' in the source tree "
    "with access to the npm registry, and restart the server.\n"
)
_DOCUMENT = Template("""\
<!doctype html>
<html lang="en"><head><meta charset="utf-8"><meta name="viewport" content="width=device-width, initial-scale=1">
<meta name="color-scheme" content="light dark"><title>$title · Stoker</title>
<link rel="icon" href="data:,"><link rel="stylesheet" href="$style"></head>
<body class="plain"><main><h1>$title</h1>$content</main></body></html>
""")
_SIGN_IN = Template("""\
$problem<form method="post" action="sign-in" class="stack">
<input type="hidden" name="csrf" value="$csrf"><input type="hidden" name="next" value="$next">
<label>User name<input name="name" required autofocus autocomplete="username" value="$name"></label>
<label>Password<input name="password" type="password" required autocomplete="current-password"></label>
$domain<button class="primary">Sign in</button></form>
""")
_DOMAIN = Template('<label>Domain<input name="domain" required value="$domain"></label>')
_SIGN_OUT = Template("""\
<form method="post" action="sign-out"><input type="hidden" name="csrf" value="$csrf"><button>Sign out</button></form>
""")
_CODE_REFUSED = "The link has expired or was used: run `stoker console` again"
_REFUSED_LOGIN = (
    "An application credential does not sign in to the console: log in with a user name and a password, or open the"
    " console and enter them there."
)
_NOTHING: Mapping[str, str] = {}


def start(request: RequestContext) -> Response:
    """Redirect to the user's only project, or return the list of projects to choose from."""
    if not request.raw.url.path.endswith("/"):
        return _redirect("console/")
    session = request.app.sessions.find(request.raw)
    try:
        projects = None if session is None else request.app.sessions.logins.list_projects(session.token)
    except Unauthorized:
        projects = None
    if session is None or projects is None:
        return _ask_to_sign_in(request, "")
    if len(projects) == 1:
        return _redirect(f"p/{quote(projects[0].id)}/")
    rows = "".join(f'<li><a href="p/{quote(project.id)}/">{escape(project.name)}</a></li>' for project in projects)
    content = f"<ul>{rows}</ul>" if rows else "<p>You have a role in no project: ask an administrator for one.</p>"
    return _plain("Choose a project", content + _SIGN_OUT.substitute(csrf=session.csrf))


def show(request: RequestContext) -> Response:
    """Return the page that starts the console in a project. The script shows the rest of the path."""
    path, sessions, html = request.raw.url.path.partition("/console/")[2], request.app.sessions, assets.page()
    session = sessions.find(request.raw)
    if session is None or html is None:
        return _ask_to_sign_in(request, path)
    try:
        principal = sessions.principal_of(session)
        names = {project.id: project.name for project in sessions.logins.list_projects(session.token)}
    except Unauthorized:
        return _ask_to_sign_in(request, path)
    project_id, base = request.path["project"], "../" * path.count("/")
    if project_id not in names:
        content = f'<p>You have no role in this project. <a href="{base}">Choose another one.</a></p>'
        return _plain("No such project", content, base, status=403)
    entered = sessions.enter(session, project_id)[1]
    facts = {
        "user": principal.user_name,
        "user_id": principal.user_id,
        "project": {"id": project_id, "name": names[project_id]},
        "has_projects": len(names) > 1,
        "can_write": not Caller.of(entered).only_reads,
        "is_admin": entered.site_admin,
        "domain": DOMAIN_NAME if request.app.settings.at_keystone else "",
        "expires_at": principal.expires_at.isoformat(),
        "csrf": session.csrf,
        "base": base,
        "version": VERSION,
    }
    meta = f'<meta name="stoker-session" content="{escape(json.dumps(facts))}">'
    document = html.replace("./assets/", f"{base}assets/").replace("</head>", f"{meta}</head>", 1)
    return Response(200, document.encode(), media_type=_HTML)


def ask(request: RequestContext) -> Response:
    """Return the sign-in page."""
    return _sign_in_page(request, 200, form={"next": request.query.get("next", "")})


def sign_in(request: RequestContext) -> Response:
    """
    Begin a session with a user name and a password.

    The sign-in page is answered with the page that it leads to; a window whose session has ended, with the CSRF token
    of the new one. Raises Unauthorized, TooManyRequests.
    """
    form = _read_form(request)
    if csrf := request.raw.headers.get(CSRF_HEADER, ""):
        return _sign_in_again(request, form, csrf)
    if not request.app.sessions.may_log_in(request.raw, form.get("csrf", "")):
        return _sign_in_page(request, 400, "The form has expired. Try again.", form)
    try:
        session = _log_in(request, form)
    except Unauthorized:
        return _sign_in_page(request, 401, "The user name or the password is wrong.", form)
    except TooManyRequests as refused:
        return _sign_in_page(request, 429, f"{refused.message}.", form)
    target = form.get("next", "")
    is_own = target.startswith("p/") and target.isprintable() and target.isascii() and "\\" not in target
    return _redirect(target if is_own else "./", _cookie_of(request, session))


def _sign_in_again(request: RequestContext, form: Mapping[str, str], csrf: str) -> Response:
    previous = request.app.sessions.find(request.raw)
    if previous is None or not is_equal(csrf, previous.csrf):
        raise Unauthorized("The session of this window is not known: reload the page")
    session = _log_in(request, form)
    return Response(200, {"csrf": session.csrf}, _cookie_of(request, session))


class ConsoleCode(Answer):
    code: Annotated[str, Meta(description="Open /console/enter#code=CODE in a browser. Valid once, and for a minute")]
    expires_at: Time


@operation(201, {"console_code": ConsoleCode}, body_optional=True)
def create_code(request: RequestContext) -> dict[str, Any]:
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


def ask_to_enter(request: RequestContext) -> Response:
    """
    Return the page whose script signs in with the one-time code of the URL's fragment, which no server receives.

    A link of another site gets no script: it could sign its visitors in as somebody else.
    """
    html = assets.page("enter")
    if html is None:
        return _ask_to_sign_in(request, "enter")
    if request.raw.headers.get("sec-fetch-site") in ("cross-site", "same-site"):
        return _plain(
            "Sign in", '<p>Another site has sent you here. <a href="sign-in">Sign in with a password.</a></p>'
        )
    csrf, cookie = request.app.sessions.begin_login(is_secure=_is_secure(request))
    document = html.replace("</head>", f'<meta name="stoker-csrf" content="{csrf}"></head>', 1)
    return Response(200, document.encode(), {"Set-Cookie": cookie}, _HTML)


def enter(request: RequestContext) -> Response:
    """
    Begin a session with a one-time code, and return the page of its project.

    Raises Unauthorized if the code is not valid, has expired or was used, and Conflict if somebody else is signed in.
    """
    form, sessions, store = _read_form(request), request.app.sessions, request.app.store
    if not sessions.may_log_in(request.raw, form.get("csrf", "")):
        raise Unauthorized("The page has expired: open the link again")
    address = client_address(request.raw, request.app.settings)
    code = sessions.read_code(form.get("code", ""), store.clock.now())
    if code is None:
        raise Unauthorized(_CODE_REFUSED)
    session = sessions.create(code.token)
    principal = sessions.principal_of(session)
    _refuse_other_user(request, principal)
    if not store.write(lambda tx: identity.use_code(tx, code.hash, tx.now + CODE_LIFE)):
        audit_trail.record_failed_login(store, principal.user_name, address, "the one-time code was used before")
        raise Unauthorized(_CODE_REFUSED)
    audit_trail.record_user(store, principal, "log in", Outcome.ALLOWED, f"from {address}")
    return Response(200, {"next": f"p/{quote(code.project_id)}/"}, _cookie_of(request, session))


def _refuse_other_user(request: RequestContext, principal: Principal) -> None:
    """Raise Conflict if the browser has a session of another user, whose windows would change hands."""
    present = request.app.sessions.find(request.raw)
    if present is None:
        return
    with suppress(Unauthorized):  # the session has ended
        name = request.app.sessions.principal_of(present).user_name
        if name != principal.user_name:
            raise Conflict(f"This browser is signed in as {name}: sign out first, or open the link in another browser")


def sign_out(request: RequestContext) -> Response:
    """End the session and revoke its token. Raises Unauthorized."""
    session = request.app.sessions.find(request.raw)
    if session is not None:
        if not is_equal(_read_form(request).get("csrf", ""), session.csrf):
            raise Unauthorized("The form has expired: reload the page, and sign out again")
        with suppress(Unauthorized):  # the token has expired
            request.app.sessions.logins.revoke(session.token)
    return _redirect("sign-in", {"Set-Cookie": end_session(is_secure=_is_secure(request))})


def _log_in(request: RequestContext, form: Mapping[str, str]) -> Session:
    """Return a session for the user and the password of the form. Raises Unauthorized, TooManyRequests."""
    app, name, domain = request.app, form.get("name", ""), form.get("domain") or DOMAIN_NAME
    address = client_address(request.raw, app.settings)

    def log_in() -> Session:
        return app.sessions.create(app.sessions.logins.log_in(name, form.get("password", ""), domain, address))

    return audit_trail.audit_login(app.store, name, address, log_in, app.sessions.principal_of)


def _ask_to_sign_in(request: RequestContext, path: str) -> Response:
    """Redirect to the sign-in page, which leads back to ``path`` below the console's."""
    base, query = "../" * path.count("/"), request.raw.url.query
    if assets.page() is None:
        return Response(404, _ABSENT.encode(), media_type="text/plain; charset=utf-8")
    if request.raw.headers.get("sec-fetch-site") == "cross-site":
        # A link from another site: browsers send the cookie only with a request that a page of this site begins.
        url = escape(f"./{path.rpartition('/')[2]}" + (f"?{query}" if query else ""))
        return _plain("One moment", f'<meta http-equiv="refresh" content="0; url={url}">', base)
    target = quote(path + (f"?{query}" if query else ""))
    return _redirect(f"{base}sign-in" + (f"?next={target}" if target else ""))


def _sign_in_page(
    request: RequestContext, status: int, problem: str = "", form: Mapping[str, str] = _NOTHING
) -> Response:
    csrf, cookie = request.app.sessions.begin_login(is_secure=_is_secure(request))
    values = {name: escape(form.get(name, "")) for name in ("name", "next")}
    domain = escape(form.get("domain") or DOMAIN_NAME)
    content = _SIGN_IN.substitute(
        problem=f'<p class="problem" role="alert">{escape(problem)}</p>' if problem else "",
        domain=_DOMAIN.substitute(domain=domain) if request.app.settings.at_keystone else "",
        csrf=csrf,
        **values,
    )
    return _plain("Sign in", content, status=status, headers={"Set-Cookie": cookie})


def _plain(
    title: str, content: str, base: str = "", *, status: int = 200, headers: Mapping[str, str] = _NOTHING
) -> Response:
    """Return a page without scripts. ``base`` leads from its path to the console's."""
    style = next((name for name, asset in assets.load().items() if asset.media_type.startswith("text/css")), "")
    document = _DOCUMENT.substitute(title=title, content=content, style=f"{base}assets/{style}")
    return Response(status, document.encode(), headers, _HTML)


def _redirect(location: str, headers: Mapping[str, str] = _NOTHING) -> Response:
    return Response(303, None, {"Location": location, **headers})


def _read_form(request: RequestContext) -> dict[str, str]:
    fields = parse_qs(request.body.decode("utf-8", "replace"), keep_blank_values=True, max_num_fields=20)
    return {name: values[-1] for name, values in fields.items()}


def _cookie_of(request: RequestContext, session: Session) -> dict[str, str]:
    return {"Set-Cookie": request.app.sessions.cookie_of(session, is_secure=_is_secure(request))}


def _is_secure(request: RequestContext) -> bool:
    """Return whether browsers reach the console with HTTPS, also at a proxy."""
    return request.raw.url.scheme == "https" or request.app.settings.public_url.startswith("https:")
