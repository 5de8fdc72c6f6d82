"""
A service at the other end of HTTP, asked by jobs.

One that does not answer must not hold the threads that other jobs need: for a while after a failure only one request
at a time finds out whether it is back, and all others fail at once.
"""

from __future__ import annotations

import threading
import time
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any, Protocol

if TYPE_CHECKING:
    import httpx2

#: Seconds to wait for an answer, and to spare a peer that gave none.
_PATIENCE, _SPARED = 5.0, 2.0
_UNAUTHORIZED = 401


class PeerAway(Exception):
    """It gives no answer, or one that another time may be better."""


class PeerRefused(Exception):
    """It understood, and will not."""

    def __init__(self, words: str, status: int) -> None:
        super().__init__(words)
        self.status = status


class Login(Protocol):
    def headers(self, http: httpx2.Client, project_id: str) -> Mapping[str, str]:
        """What makes a request of that project's one that is let in. Raises PeerAway, PeerRefused."""

    def forget(self, project_id: str) -> None:
        """They were refused: make new ones."""


class Peer:
    def __init__(self, root: str, login: Login) -> None:
        self.root = root
        self._login = login
        self._lock = threading.Lock()
        self._http: httpx2.Client | None = None
        #: By the monotonic clock; 0: it answered last time. At first nobody knows: one finds out.
        self._spared_until = time.monotonic()

    def ask(
        self,
        verb: str,
        path: str,
        *,
        project_id: str = "",
        content: bytes | None = None,
        headers: Mapping[str, str] | None = None,
        signed: bool = False,
    ) -> httpx2.Response:
        """
        Its answer below 500. ``signed``: the headers say it all, no login is needed. Raises PeerAway, PeerRefused when
        it is the login that is refused.
        """
        self._pass()
        spared = 0.0
        try:
            answer = self._send(verb, path, project_id, content, headers or {}, signed)
            if answer.status_code == _UNAUTHORIZED and not signed:
                self._login.forget(project_id)
                answer = self._send(verb, path, project_id, content, headers or {}, signed)
            self._look_at(answer, verb, path)
        except PeerAway:
            spared = time.monotonic() + _SPARED
            raise
        finally:
            self._spared_until = spared
        return answer

    def close(self) -> None:
        if self._http is not None:
            self._http.close()

    def _pass(self) -> None:
        with self._lock:
            if not self._spared_until:
                return
            now = time.monotonic()
            if now < self._spared_until:
                raise PeerAway(f"{self.root} gave no answer lately")
            self._spared_until = now + _PATIENCE  # until this one has found out

    def _send(
        self,
        verb: str,
        path: str,
        project_id: str,
        content: bytes | None,
        headers: Mapping[str, str],
        signed: bool,
    ) -> httpx2.Response:
        # Late: it costs start-up time that those who embed everything need not pay.
        import httpx2

        if self._http is None:
            self._http = httpx2.Client(timeout=_PATIENCE)
        try:
            said = {**({} if signed else self._login.headers(self._http, project_id)), **headers}
            return self._http.request(verb, self.root + path, content=content, headers=said)
        except (httpx2.HTTPError, httpx2.InvalidURL, httpx2.StreamError) as error:
            raise PeerAway(f"{self.root} does not answer: {type(error).__name__}: {error}") from None

    def _look_at(self, answer: httpx2.Response, verb: str, path: str) -> None:
        if answer.status_code >= 500 or answer.status_code == 429:
            raise PeerAway(f"{verb} {self.root}{path} was answered {answer.status_code}")
        if answer.status_code in (_UNAUTHORIZED, 403):
            raise PeerRefused(f"{verb} {self.root}{path} was answered {answer.status_code}", answer.status_code)


@contextmanager
def making_sense() -> Iterator[None]:
    """Around what reads an answer. Raises PeerAway for one that is not what it should be: of a proxy, perhaps."""
    try:
        yield
    except (AttributeError, KeyError, TypeError, ValueError) as error:
        raise PeerAway(f"an answer makes no sense: {type(error).__name__}: {error}") from None


def expect(answer: Any, *statuses: int) -> None:
    """Raises PeerRefused for any other answer."""
    if answer.status_code not in statuses:
        words = f"{answer.request.method} {answer.request.url} was answered {answer.status_code}: {answer.text[:300]}"
        raise PeerRefused(words, answer.status_code)
