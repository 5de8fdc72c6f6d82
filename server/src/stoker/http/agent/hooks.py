"""/agent/v1/hooks/{sha256}: stored hooks, as agents fetch them."""

from __future__ import annotations

from stoker.http.contracts import Success, operation
from stoker.http.request import RequestContext, Response, matches_tag
from stoker.model.artifact import ArtifactKind
from stoker.model.errors import EntityNotFound
from stoker.store import artifacts, servers
from stoker.store.tx import Tx


@operation(
    200,
    bytes,
    headers=("ETag",),
    media_type="application/octet-stream",
    also={304: Success(headers=("ETag",))},
)
def show(request: RequestContext, tx: Tx) -> Response:
    """Return a hook of the server's project or of the site, or 304 if the client has it. Raises EntityNotFound."""
    digest = request.path["sha256"]
    server = servers.find(tx, request.server)
    project = server.project_id if server is not None else ""
    hook = artifacts.find_by_digest(tx, ArtifactKind.HOOK, project, digest)
    if hook is None:
        raise EntityNotFound(f"The server's project has no stored hook with the SHA-256 {digest}.")
    headers = {"ETag": f'"{hook.sha256}"'}
    if matches_tag(request.raw.headers.get("if-none-match", ""), hook.sha256):
        return Response(304, headers=headers)
    return Response(200, artifacts.content(tx, hook.id), headers, media_type="application/octet-stream")
