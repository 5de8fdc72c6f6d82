"""Access rules of the identity API."""

from __future__ import annotations

from collections.abc import Mapping

from starlette.requests import Request

from stoker.http.access import ADMIN, AuthResult, principal_of
from stoker.http.app import App
from stoker.model.errors import Forbidden
from stoker.model.principal import Principal


class Self:
    """
    Admits the user that the path names.

    ``unrestricted``: refuses restricted application credentials, which may not create others, and the users of
    resources.
    """

    def __init__(self, *, unrestricted: bool = False) -> None:
        self._unrestricted = unrestricted

    async def authenticate(self, request: Request, path: Mapping[str, str], app: App) -> AuthResult:
        principal = await principal_of(request, app)
        if not self._allows(principal, path):
            raise _forbidden()
        return AuthResult(principal=principal)

    def _allows(self, principal: Principal, path: Mapping[str, str]) -> bool:
        limited = principal.restricted or principal.resource_id is not None
        return path["user_id"] == principal.user_id and not (self._unrestricted and limited)


class SelfOrSiteAdmin(Self):
    """Also admits site administrators."""

    def _allows(self, principal: Principal, path: Mapping[str, str]) -> bool:
        return principal.site_admin or super()._allows(principal, path)


class OwnOrSiteAdmin:
    """Admits every logged-in user. Site administrators see all objects, other users only their own (``limited_to``)."""

    async def authenticate(self, request: Request, path: Mapping[str, str], app: App) -> AuthResult:
        principal = await principal_of(request, app)
        return AuthResult(principal=principal, limited_to=None if principal.site_admin else principal.user_id)


class ProjectAdmin:
    """Admits administrators of the path's project, with a token for that project, and site administrators."""

    async def authenticate(self, request: Request, path: Mapping[str, str], app: App) -> AuthResult:
        principal = await principal_of(request, app)
        if not _administers(principal, path["project_id"]):
            raise _forbidden()
        return AuthResult(principal=principal)


class SelfOrProjectAdmin:
    """
    Also admits the user that the path names. The handler limits the user to projects in which the user has a role.
    """

    async def authenticate(self, request: Request, path: Mapping[str, str], app: App) -> AuthResult:
        principal = await principal_of(request, app)
        if _administers(principal, path["project_id"]):
            return AuthResult(principal=principal)
        if path["user_id"] != principal.user_id:
            raise _forbidden()
        return AuthResult(principal=principal, limited_to=principal.user_id)


class Assignments:
    """
    Admits queries for role assignments.

    Users may query their own roles, project administrators the roles in their project, site administrators all roles.
    """

    async def authenticate(self, request: Request, path: Mapping[str, str], app: App) -> AuthResult:
        principal = await principal_of(request, app)
        query = request.query_params
        own = query.get("user.id") == principal.user_id
        if not own and not _administers(principal, query.get("scope.project.id")):
            raise _forbidden()
        return AuthResult(principal=principal)


def _administers(principal: Principal, project_id: str | None) -> bool:
    if principal.site_admin:
        return True
    own = project_id is not None and project_id == principal.project_id
    return own and ADMIN in principal.roles and not principal.restricted


def _forbidden() -> Forbidden:
    return Forbidden("You are not authorized to perform the requested action.")
