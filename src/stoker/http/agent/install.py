"""/agent/v1/install and /agent/v1/stoker-agent.pyz: the installer and the agent program."""

from __future__ import annotations

import hashlib

from stoker.http.contracts import operation
from stoker.http.request_context import RequestContext, Response


@operation(200, bytes, headers=("ETag",), media_type="text/x-python")
def script(request: RequestContext) -> Response:
    """Return the install script of the agent."""
    return _file(request.app.servers.agent_bundle.script, "text/x-python")


@operation(200, bytes, headers=("ETag",), media_type="application/zip")
def zipapp(request: RequestContext) -> Response:
    """Return the agent's program."""
    return _file(request.app.servers.agent_bundle.program(), "application/zip")


def _file(content: bytes, media_type: str) -> Response:
    """The ETag is the file's SHA-256, with which the install commands verify the download."""
    return Response(200, content, {"ETag": f'"{hashlib.sha256(content).hexdigest()}"'}, media_type)
