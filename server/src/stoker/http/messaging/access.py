"""Access rules of the messaging API: members and readers of a project, users of resources, and signed URLs."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

from stoker.http.access import TOKEN, Access, Attempt, Caller, Credential, InProject
from stoker.http.threads import in_thread
from stoker.identity import stack_users
from stoker.messaging.signed_urls import SignedUrl
from stoker.model.errors import EntityNotFound, Forbidden, Invalid
from stoker.model.ids import split_remote_name
from stoker.store import identity

if TYPE_CHECKING:
    from stoker.http.app import App

#: Path prefix of the API. Signed paths omit it, because Zaqar's signatures cover the path without its mount point.
MOUNTED_AT = "/messaging"
_MESSAGES = re.compile(r"/v(?:2|1\.1)/queues/([^/]+)/messages(?:/.*)?", re.DOTALL)
_REFUSED = "This signed URL is not valid for this request, or has expired."


class QueueUser(InProject):
    """A predicate: the token is for the queues' project, with the role. Users of resources have their own queues."""

    def __call__(self, caller: Caller, attempt: Attempt) -> bool:
        """Return whether the caller may use the queue. Raises Invalid and Forbidden."""
        principal = caller.principal
        if principal is None:
            return True
        project = attempt.request.headers.get("x-project-id")
        if principal.project_id is None:
            raise Invalid("queues belong to projects: use a token that is scoped to one")
        if project and project not in (principal.project_id, principal.login_project_id):
            raise Forbidden("X-Project-Id names another project than the token's")
        if principal.resource_id is not None:
            match = _MESSAGES.fullmatch(attempt.request.scope["path"].removeprefix(MOUNTED_AT))
            return match is not None and split_remote_name(match[1])[0] == principal.resource_id
        return self.includes(principal)


async def _by_signature(attempt: Attempt) -> Caller | None:
    """
    Check the signature for the path and method, which ``/share`` or Stoker itself has created.

    Like Zaqar, the error does not name the reason. Raises EntityNotFound.
    """
    request, app = attempt.request, attempt.app
    headers = request.headers
    if "url-signature" not in headers:
        return None
    path, now = request.scope["path"].removeprefix(MOUNTED_AT), app.store.clock.now()
    url = SignedUrl(
        project=headers.get("x-project-id") or "",
        paths=tuple(headers.get("url-paths", "").split(",")),
        methods=tuple(headers.get("url-methods", "").split(",")),
        expires=headers.get("url-expires", ""),
        signature=headers["url-signature"],
    )
    for urls, lives in ((app.messaging.signed_urls, _lives), (app.agents_urls, _stands_for_one)):
        if urls.allows(url, request.method, path, now) and await in_thread(lives, app, url.project, path):
            return Caller(project=url.project, as_owner=urls is app.agents_urls)
    raise EntityNotFound(_REFUSED)


def queue_access(role: str) -> Access:
    """Return the rule of a route that needs a role in the queues' project, or a signed URL."""
    return Access(Credential("urlSignature", _by_signature), TOKEN, allow=QueueUser(role))


def _stands_for_one(app: App, project_id: str, path: str) -> bool:
    """
    Return whether the user of the resource that the queue belongs to still exists and its project is enabled.

    A signed URL for an agent is valid as long as a login of that user.
    """
    user_id = stack_users.user_id(split_remote_name(path.removeprefix("/v2/queues/").partition("/")[0])[0])
    with app.store.read() as tx:
        user = stack_users.find(tx, user_id)
    return user is not None and user.project.id == project_id and user.project.enabled


def _lives(app: App, project_id: str, _path: str) -> bool:
    with app.store.read() as tx:
        project = identity.project(tx, project_id)
    return project.enabled if project is not None else app.settings.at_keystone
