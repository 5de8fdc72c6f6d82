"""/agent/v1/install and /agent/v1/stoker-agent.pyz: the installer and the agent program."""

from __future__ import annotations

import hashlib

from stoker.http.contracts import Success, operation
from stoker.http.request import RequestContext, Response, matches_tag

_UNCHANGED = {304: Success(headers=("ETag",))}


@operation(200, bytes, headers=("ETag",), media_type="text/x-python", also=_UNCHANGED)
def script(request: RequestContext) -> Response:
    """Return the install script of the agent."""
    return file_response(request, request.app.servers.agent_bundle.script, "text/x-python")


@operation(200, bytes, headers=("ETag",), media_type="application/zip", also=_UNCHANGED)
def zipapp(request: RequestContext) -> Response:
    """Return the agent's program."""
    return file_response(request, request.app.servers.agent_bundle.program(), "application/zip")


def file_response(request: RequestContext, content: bytes, media_type: str) -> Response:
    """
    Return a file, or 304 if the client has it (If-None-Match).

    The ETag is the file's SHA-256, with which the install commands verify the download.
    """
    digest = hashlib.sha256(content).hexdigest()
    headers = {"ETag": f'"{digest}"'}
    if matches_tag(request.raw.headers.get("if-none-match", ""), digest):
        return Response(304, headers=headers)
    return Response(200, content, headers, media_type)
