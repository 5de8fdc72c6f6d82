"""A browser's session with the console, by its HTTP requests alone."""

from __future__ import annotations

import json
import re
from dataclasses import dataclass, field
from html import unescape
from http.cookies import SimpleCookie
from typing import Any
from urllib.parse import urlencode

import pytest

from stoker.http.console import assets
from support.databases import missing
from support.server import Answer, Served

_FORM = {"Content-Type": "application/x-www-form-urlencoded"}


@pytest.fixture(scope="session")
def built_console() -> None:
    """Skip the test if this installation lacks the console."""
    if assets.page() is None:
        missing("the console is not built: make console")


@dataclass
class Browser:
    """Sends the cookies that the console has set, and the CSRF token of its pages."""

    stoker: Served
    cookies: dict[str, str] = field(default_factory=dict)
    csrf: str = ""

    def get(self, path: str, **headers: str) -> Answer:
        """Open a page below the console's path."""
        return self._note(self.stoker.request("GET", f"/console/{path}", headers={**self.headers, **headers}))

    def post(self, path: str, form: dict[str, str], **headers: str) -> Answer:
        """Send a form."""
        data = urlencode(form).encode()
        answer = self.stoker.request("POST", f"/console/{path}", data, {**self.headers, **_FORM, **headers})
        return self._note(answer)

    def sign_in(self, name: str, password: str, target: str = "") -> Answer:
        """Sign in with the form of the sign-in page."""
        form = {"csrf": self.form_token(), "name": name, "password": password, "next": target}
        return self.post("sign-in", form)

    def form_token(self) -> str:
        """Return the CSRF token of a new sign-in form."""
        match = re.search(rb'name="csrf" value="(\w+)"', self.get("sign-in").raw)
        assert match is not None
        return match[1].decode()

    def open(self, project: str) -> dict[str, Any]:
        """Open the console in a project, and return what the page says of the session."""
        answer = self.get(f"p/{project}/")
        assert answer.status == 200, answer
        match = re.search(rb'name="stoker-session" content="([^"]*)"', answer.raw)
        assert match is not None
        facts: dict[str, Any] = json.loads(unescape(match[1].decode()))
        self.csrf = facts["csrf"]
        return facts

    def api(self, verb: str, path: str, body: Any = None, **headers: str) -> Answer:
        """Call the REST API as the console's scripts do."""
        sent = {**self.headers, "X-Stoker-CSRF": self.csrf, **headers}
        return self.stoker.request(
            verb, f"/console/api{path}", body, {name: text for name, text in sent.items() if text}
        )

    @property
    def headers(self) -> dict[str, str]:
        """The cookies, as a browser sends them."""
        return {"Cookie": "; ".join(f"{name}={value}" for name, value in self.cookies.items())}

    def _note(self, answer: Answer) -> Answer:
        header = {name.lower(): value for name, value in answer.headers.items()}.get("set-cookie")
        if header:
            for name, morsel in SimpleCookie(header).items():
                self.cookies[name] = morsel.value
        return answer
