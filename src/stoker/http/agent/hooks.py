"""/agent/v1/hooks/{sha256}: stored hooks, as agents fetch them."""

from __future__ import annotations

from stoker.http.contracts import operation
from stoker.http.request_context import RequestContext, Response
from stoker.model.artifact import ArtifactKind
from stoker.model.errors import EntityNotFound
from stoker.store import artifacts, servers
from stoker.store.tx import Tx


@operation(200, bytes, media_type="application/octet-stream")
def show(request: RequestContext, tx: Tx) -> Response:
    """Return a hook of the server's project or of the site. Raises EntityNotFound."""
    digest = request.path["sha256"]
    server = servers.find(tx, request.server)
    project = server.project_id if server is not None else ""
    hook = artifacts.find_by_digest(tx, ArtifactKind.HOOK, project, digest)
    if hook is None:
        raise EntityNotFound(f"The server's project has no stored hook with the SHA-256 {digest}.")
    return Response(200, artifacts.content(tx, hook.id), media_type="application/octet-stream")
