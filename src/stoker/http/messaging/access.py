"""Access rules of the messaging API: members and readers of a project, users of resources, and signed URLs."""

from __future__ import annotations

from collections.abc import Mapping

from starlette.requests import Request

from stoker.http.access import AuthResult, principal_of, with_implied_roles
from stoker.http.app import App
from stoker.http.threads import in_thread
from stoker.identity import stack_users
from stoker.model.errors import EntityNotFound, Forbidden, Invalid
from stoker.store import identity

#: Path prefix of the API. Signed paths omit it, because Zaqar's signatures cover the path without its mount point.
MOUNTED_AT = "/messaging"
_REFUSED = "This signed URL is not valid for this request, or has expired."


class QueueAccess:
    """
    Requires a token of the queues' project, with the role or a role that includes it.

    Without a token, a URL signature for the path and method is required. ``/share`` and Stoker's own signed queue URLs
    provide such signatures.
    """

    def __init__(self, role: str) -> None:
        self.roles = with_implied_roles(role)

    async def authenticate(self, request: Request, path: Mapping[str, str], app: App) -> AuthResult:
        project = request.headers.get("x-project-id")
        if "url-signature" in request.headers:
            return await self._authenticate_signature(request, project or "", app)
        principal = await principal_of(request, app)
        if principal.project_id is None:
            raise Invalid("queues belong to projects: use a token that is scoped to one")
        if project and project not in (principal.project_id, principal.login_project_id):
            raise Forbidden("X-Project-Id names another project than the token's")
        if principal.resource_id is not None:
            if not _own_queue(principal.resource_id, request.scope["path"].removeprefix(MOUNTED_AT)):
                raise Forbidden("You are not authorized to complete this action.")
            return AuthResult(principal=principal, project=principal.project_id, as_owner=True)
        if not self.roles & principal.roles:
            raise Forbidden("You are not authorized to complete this action.")
        return AuthResult(principal=principal, project=principal.project_id)

    async def _authenticate_signature(self, request: Request, project: str, app: App) -> AuthResult:
        """Check the signature. Like Zaqar, the error does not name the reason. Raises EntityNotFound."""
        headers = request.headers
        path = request.scope["path"].removeprefix(MOUNTED_AT)
        for urls, lives in ((app.signed_urls, _lives), (app.agents_urls, _stands_for_one)):
            allowed = urls.allows(
                request.method,
                path,
                project=project,
                paths=headers.get("url-paths", "").split(","),
                methods=headers.get("url-methods", "").split(","),
                expires=headers.get("url-expires", ""),
                signature=headers["url-signature"],
                now=app.store.clock.now(),
            )
            if allowed and await in_thread(lives, app, project, path):
                return AuthResult(project=project, as_owner=urls is app.agents_urls)
        raise EntityNotFound(_REFUSED)


def _own_queue(resource_id: str, path: str) -> bool:
    """Return whether the path is within the messages of the queue that has the resource's id as its name."""
    own = [f"/{version}/queues/{resource_id}/messages" for version in ("v2", "v1.1")]
    return path in own or any(path.startswith(f"{root}/") for root in own)


def _stands_for_one(app: App, project_id: str, path: str) -> bool:
    """
    Return whether the user of the resource that the queue belongs to still exists and its project is enabled.

    A signed URL for an agent is valid as long as a login of that user.
    """
    user_id = stack_users.user_id(path.removeprefix("/v2/queues/").partition("/")[0])
    with app.store.read() as tx:
        user = stack_users.find(tx, user_id)
    return user is not None and user.project.id == project_id and user.project.enabled


def _lives(app: App, project_id: str, _path: str) -> bool:
    with app.store.read() as tx:
        project = identity.project(tx, project_id)
    return project.enabled if project is not None else app.settings.at_keystone
