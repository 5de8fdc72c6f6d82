"""The keys of agents: checked with the central Stoker before the relay reads a body, and cached."""

from __future__ import annotations

import time

from starlette.requests import Request

from stoker.bounded_dict import BoundedDict
from stoker.http.access import Attempt, Caller
from stoker.http.request import client_address
from stoker.model.errors import TooManyRequests, Unauthorized, Unavailable
from stoker.settings import Settings
from stoker_relay.center import Center

#: Accepted and refused keys, and addresses, that are in memory; those that were not used for the longest time leave.
_CACHED = 50_000
_LONGEST_KEY = 255
#: Seconds for which a refused key is refused without another check.
_REFUSED_SECONDS = 10.0
#: Refused keys of one address in one minute, after which its other unknown keys are not checked.
_REFUSALS, _MINUTE = 60, 60.0
_WRONG = "This key is not valid, or has been revoked."


def key_of(request: Request) -> str:
    """Return the agent's key. Raises Unauthorized."""
    scheme, _, key = request.headers.get("authorization", "").partition(" ")
    if scheme.lower() != "bearer" or not key:
        raise Unauthorized("an agent's key is required: Authorization: Bearer <key>")
    if len(key) > _LONGEST_KEY or not key.isascii():
        raise Unauthorized(_WRONG)
    return key


class Keys:
    """Finds the server of an agent's key. Use it on the event loop only."""

    def __init__(self, center: Center, settings: Settings) -> None:
        self._center = center
        self._settings = settings
        self._accepted: BoundedDict[str, bool] = BoundedDict(_CACHED)
        #: Key → the time until which it stays refused.
        self._refused: BoundedDict[str, float] = BoundedDict(_CACHED)
        #: Address → the start of its minute, and its refused keys since then.
        self._refusals: BoundedDict[str, tuple[float, int]] = BoundedDict(_CACHED)

    async def find(self, attempt: Attempt) -> Caller:
        """Return the agent's server. Raises Unauthorized, TooManyRequests and CenterAway."""
        key = key_of(attempt.request)
        if not self._accepted.get(key):
            await self._check(key, client_address(attempt.request, self._settings))
        return Caller(server=key.partition(".")[0])

    def forget(self, key: str) -> None:
        """Check the key again at its next use, because the central Stoker has refused it."""
        self._accepted.drop(key)

    async def _check(self, key: str, address: str) -> None:
        now = time.monotonic()
        if self._refused.get(key, 0.0) > now:
            raise Unauthorized(_WRONG)
        start, count = self._refusals.get(address) or (now, 0)
        if start + _MINUTE > now and count >= _REFUSALS:
            raise TooManyRequests("Too many keys from this address were refused", int(start + _MINUTE - now) + 1)
        headers = {"Authorization": f"Bearer {key}", "X-Forwarded-For": address}
        response = await self._center.send("GET", "/agent/v1/approval?wait=0", headers, is_known=False)
        if response.status == 200:
            self._accepted.put(key, True)
            return
        if response.status != 401:  # the central Stoker is busy, for example
            raise Unavailable("The central Stoker cannot check the key", 5)
        self._refused.put(key, now + _REFUSED_SECONDS)
        start, count = self._refusals.get(address) or (now, 0)
        self._refusals.put(address, (start, count + 1) if start + _MINUTE > now else (now, 1))
        raise Unauthorized(_WRONG)
