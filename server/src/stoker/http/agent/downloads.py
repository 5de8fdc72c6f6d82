"""/agent/v1/install, stoker-agent.pyz and hooks/{sha256}: what agents download."""

from __future__ import annotations

import hashlib

from stoker.http.contracts import Success, operation
from stoker.http.request import RequestContext, Response, matches_tag
from stoker.model.artifact import ArtifactKind
from stoker.model.errors import EntityNotFound
from stoker.store import artifacts, servers
from stoker.store.tx import Tx

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


@operation(200, bytes, headers=("ETag",), media_type="application/octet-stream", also=_UNCHANGED)
def hook(request: RequestContext, tx: Tx) -> Response:
    """Return a hook of the server's project or of the site, or 304 if the client has it. Raises EntityNotFound."""
    digest = request.path["sha256"]
    server = servers.find(tx, request.server)
    project = server.project_id if server is not None else ""
    artifact = artifacts.find_by_digest(tx, ArtifactKind.HOOK, project, digest)
    if artifact is None:
        raise EntityNotFound(f"The server's project has no stored hook with the SHA-256 {digest}.")
    return file_response(request, artifacts.content(tx, artifact.id), "application/octet-stream")
