"""
The web console: its pages and files, and the session of a browser, with which the pages call the REST API.

All routes are public: the handlers look for the session.
"""

from __future__ import annotations

from stoker.http.access import PUBLIC
from stoker.http.api import Api, Route
from stoker.http.console import assets, pages
from stoker.http.console.session import translate
from stoker.http.threads import LOGINS

_PROJECT = "/console/p/{project}"
#: Maximum bytes of a form; a password has at most 4,096 characters.
_FORM_LIMIT = 64 * 1024

ROUTES = [
    Route("GET", "/console", PUBLIC, pages.start),
    Route("GET", "/console/assets/{asset_name}", PUBLIC, assets.show),
    Route("GET", "/console/enter", PUBLIC, pages.ask_to_enter),
    Route("POST", "/console/enter", PUBLIC, pages.enter, _FORM_LIMIT, limit=LOGINS),
    Route("GET", "/console/sign-in", PUBLIC, pages.ask),
    Route("POST", "/console/sign-in", PUBLIC, pages.sign_in, _FORM_LIMIT, limit=LOGINS),
    Route("POST", "/console/sign-out", PUBLIC, pages.sign_out, _FORM_LIMIT),
    Route("GET", _PROJECT, PUBLIC, pages.show),
    Route("GET", _PROJECT + "/{page*}", PUBLIC, pages.show),
]
_CONTENT_POLICY = (
    "default-src 'none'; script-src 'self'; style-src 'self'; connect-src 'self'; img-src 'self' data:; "
    "require-trusted-types-for 'script'; trusted-types 'none'; frame-ancestors 'none'; base-uri 'none'; "
    "form-action 'self'"
)
API = Api("console", ROUTES, content_policy=_CONTENT_POLICY, translate=translate)
