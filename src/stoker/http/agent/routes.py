"""Routes of the agent API."""

from __future__ import annotations

from stoker.http.access import AgentKey, Public
from stoker.http.agent import document, enrollment, install, refusals, runs
from stoker.http.request_context import Route

_KEY = AgentKey()
_RUN = "/agent/v1/runs/{config_id}"

ROUTES = [
    Route("GET", "/agent/v1/document", _KEY, document.poll),
    Route("POST", _RUN + "/signal", _KEY, runs.signal, 2 * 1024 * 1024),
    Route("POST", _RUN + "/progress", _KEY, runs.progress),
    Route("POST", _RUN + "/logs", _KEY, runs.log, 256 * 1024),
    Route("POST", "/agent/v1/refusals", _KEY, refusals.create, 8 * 1024),
    Route("POST", "/agent/v1/enroll", Public(), enrollment.redeem_token),
    Route("GET", "/agent/v1/install", Public(), install.script),
    Route("GET", "/agent/v1/stoker-agent.pyz", Public(), install.zipapp),
]
