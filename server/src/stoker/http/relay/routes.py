"""Routes of the relay API."""

from __future__ import annotations

from stoker.http.access import RELAY_KEY, Access
from stoker.http.api import Route
from stoker.http.relay import changes, install

_KEY = Access(RELAY_KEY)

ROUTES = [
    Route("POST", "/relay/v1/changes", _KEY, changes.follow, changes.BODY_BYTES),
    Route("GET", "/relay/v1/install", _KEY, install.script),
]
