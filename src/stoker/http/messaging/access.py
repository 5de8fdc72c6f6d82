"""Who may do what with queues: a project's members, its readers, and whoever holds a signed URL."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import UTC, datetime

from starlette.requests import Request

from stoker.http.access import MEMBER, READER, Admitted, including, principal_of
from stoker.http.services import Services
from stoker.http.threads import in_thread
from stoker.identity import stack_users
from stoker.model.errors import EntityNotFound, Forbidden, Invalid
from stoker.store import identity

#: Signed paths do not hold it, as Zaqar's do not hold what it is mounted at.
MOUNTED_AT = "/messaging"
_READERS, _MEMBERS = including(READER), including(MEMBER)
_REFUSED = "This signed URL does not open that, or is over."


class QueueAccess:
    """
    A token of the project whose queues it is about: that of a member, or of a reader who only reads. Or, without a
    token, what ``/share`` gave out for this path and method.
    """

    async def admit(self, request: Request, path: Mapping[str, str], services: Services) -> Admitted:
        said = request.headers.get("x-project-id")
        if "url-signature" in request.headers:
            return await self._signed(request, said or "", services)
        principal = await principal_of(request, services)
        if principal.project_id is None:
            raise Invalid("queues belong to projects: use a token that is scoped to one")
        if said and said not in (principal.project_id, principal.login_project_id):
            raise Forbidden("X-Project-Id names another project than the one that the token is for")
        if principal.resource_id is not None:
            if not _own_queue(principal.resource_id, request.scope["path"].removeprefix(MOUNTED_AT)):
                raise Forbidden("You are not authorized to complete this action.")
            return Admitted(principal=principal, project=principal.project_id)
        reading = request.method in ("GET", "HEAD")
        if not (_READERS if reading else _MEMBERS) & principal.roles:
            raise Forbidden("You are not authorized to complete this action.")
        return Admitted(principal=principal, project=principal.project_id)

    async def _signed(self, request: Request, project: str, services: Services) -> Admitted:
        """Like Zaqar, nothing is told of why it is refused."""
        headers = request.headers
        path = request.scope["path"].removeprefix(MOUNTED_AT)
        for urls, lives in ((services.signed_urls, _lives), (services.agents_urls, _stands_for_one)):
            allowed = urls.allows(
                request.method,
                path,
                project=project,
                paths=headers.get("url-paths", "").split(","),
                methods=headers.get("url-methods", "").split(","),
                expires=headers.get("url-expires", ""),
                signature=headers["url-signature"],
                now=datetime.now(UTC),
            )
            if allowed and await in_thread(lives, services, project, path):
                return Admitted(project=project)
        raise EntityNotFound(_REFUSED)


def _own_queue(resource_id: str, path: str) -> bool:
    """A user that stands for a resource has the messages of the queue of that name."""
    own = [f"/{version}/queues/{resource_id}/messages" for version in ("v2", "v1.1")]
    return path in own or any(path.startswith(f"{each}/") for each in own)


def _stands_for_one(services: Services, project_id: str, path: str) -> bool:
    """An agent's URL is good as long as a login of the resource's user would be."""
    user_id = stack_users.user_id(path.removeprefix("/v2/queues/").partition("/")[0])
    with services.store.read() as tx:
        found = stack_users.find(tx, user_id)
    return found is not None and found.project.id == project_id and found.project.enabled


def _lives(services: Services, project_id: str, _path: str) -> bool:
    with services.store.read() as tx:
        found = identity.project(tx, project_id)
    return found.enabled if found is not None else services.settings.at_keystone
