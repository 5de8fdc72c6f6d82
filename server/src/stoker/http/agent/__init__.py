"""The API for Stoker's own agents, which enroll, poll their document and report runs: its routes."""

from __future__ import annotations

from stoker.http.access import AGENT_KEY, ANY_AGENT_KEY, PUBLIC, Access
from stoker.http.agent import document, enrollment, reports
from stoker.http.api import Route

_KEY = Access(AGENT_KEY)
_ANY_KEY = Access(ANY_AGENT_KEY)
_RUN = "/agent/v1/runs/{config_id}"

ROUTES = [
    Route("GET", "/agent/v1/document", _KEY, document.poll),
    Route("POST", _RUN + "/signal", _KEY, reports.signal, 2 * 1024 * 1024),
    Route("POST", _RUN + "/progress", _KEY, reports.progress),
    Route("POST", _RUN + "/logs", _KEY, reports.log, 256 * 1024),
    Route("PUT", "/agent/v1/facts", _KEY, reports.put_facts, 32 * 1024),
    Route("POST", "/agent/v1/checks/{deployment_id}", _KEY, reports.check),
    Route("POST", "/agent/v1/refusals", _KEY, reports.refuse_document, 8 * 1024),
    Route("GET", "/agent/v1/approval", _ANY_KEY, enrollment.poll_approval),
    Route("DELETE", "/agent/v1/server", _ANY_KEY, enrollment.leave),
    Route("GET", "/agent/v1/hooks/{sha256}", _KEY, enrollment.hook),
    Route("POST", "/agent/v1/enroll", PUBLIC, enrollment.redeem, 64 * 1024),
    Route("GET", "/agent/v1/install", PUBLIC, enrollment.script),
    Route("GET", "/agent/v1/stoker-agent.pyz", PUBLIC, enrollment.zipapp),
]
