"""/healthz and the list of API versions."""

from __future__ import annotations

from stoker.http.access import Public
from stoker.http.call import Call, Reply, Route
from stoker.version import VERSION


def health(call: Call) -> Reply:
    """200 while the database answers."""
    with call.services.store.read():
        return Reply(200, {"status": "ok", "version": VERSION})


def versions(call: Call) -> Reply:
    links = [{"rel": "self", "href": f"{call.services.settings.public_url}/v1/"}]
    return Reply(300, {"versions": [{"id": "v1.0", "status": "CURRENT", "links": links}]})


ROUTES = [
    Route("GET", "/healthz", Public(), health),
    Route("GET", "/", Public(), versions),
    Route("GET", "/versions", Public(), versions),
    Route("GET", "/v1", Public(), versions),
]
