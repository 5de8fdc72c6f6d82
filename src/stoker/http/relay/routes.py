"""Routes of the relay API."""

from __future__ import annotations

from stoker.http.access import RelayKey
from stoker.http.relay import install, polls, results
from stoker.http.request_context import Route

_KEY = RelayKey()

ROUTES = [
    Route("POST", "/relay/v1/polls", _KEY, polls.poll, polls.BODY_BYTES),
    Route("POST", "/relay/v1/results", _KEY, results.post, results.BODY_BYTES),
    Route("GET", "/relay/v1/install", _KEY, install.script),
]
