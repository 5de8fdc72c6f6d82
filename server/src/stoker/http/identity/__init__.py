"""The identity API, the part of Keystone's v3 API for logins, administration and the catalog: its routes."""

from __future__ import annotations

from stoker.http.access import ANY_TOKEN, PUBLIC, SITE_ADMIN
from stoker.http.api import Api, Failure, Route
from stoker.http.identity import auth, catalog, projects, users
from stoker.http.identity.access import (
    ASSIGNMENTS,
    FULL_SELF,
    FULL_SELF_OR_SITE,
    OWN_OR_SITE,
    PROJECT_ADMIN,
    SELF_OR_PROJECT_ADMIN,
    SELF_OR_SITE,
)
from stoker.http.request import Response
from stoker.http.threads import LOGINS

_V3 = "/identity/v3"
_PROJECTS, _USERS = _V3 + "/projects", _V3 + "/users"
_PROJECT, _USER = _PROJECTS + "/{project_id}", _USERS + "/{user_id}"
_GRANT = _PROJECT + "/users/{user_id}/roles/{role_id}"
_CREDENTIALS = _USER + "/application_credentials"
_SYSTEM_GRANTS = _V3 + "/system/users/{user_id}/roles"
#: Maximum bytes of a request without a token; a password has at most 4,096 characters.
_LOGIN_LIMIT = 64 * 1024

ROUTES = [
    Route("GET", "/identity", PUBLIC, catalog.versions),
    Route("GET", _V3, PUBLIC, catalog.version),
    Route("POST", _V3 + "/auth/tokens", PUBLIC, auth.log_in, _LOGIN_LIMIT, limit=LOGINS),
    Route("GET", _V3 + "/auth/tokens", OWN_OR_SITE, auth.show),
    Route("HEAD", _V3 + "/auth/tokens", OWN_OR_SITE, auth.show),
    Route("DELETE", _V3 + "/auth/tokens", OWN_OR_SITE, auth.revoke),
    Route("GET", _V3 + "/auth/catalog", ANY_TOKEN, catalog.show),
    Route("GET", _V3 + "/auth/projects", ANY_TOKEN, auth.projects),
    Route("GET", _V3 + "/auth/domains", ANY_TOKEN, catalog.index("domain")),
    Route("GET", _PROJECTS, OWN_OR_SITE, projects.index),
    Route("POST", _PROJECTS, SITE_ADMIN, projects.create, action="create project"),
    Route("GET", _PROJECT, OWN_OR_SITE, projects.show),
    Route("PATCH", _PROJECT, SITE_ADMIN, projects.change, action="change project"),
    Route("DELETE", _PROJECT, SITE_ADMIN, projects.delete, action="delete project"),
    Route("GET", _PROJECT + "/users/{user_id}/roles", SELF_OR_PROJECT_ADMIN, projects.list_roles),
    Route("HEAD", _GRANT, SELF_OR_PROJECT_ADMIN, projects.check_role),
    Route("GET", _GRANT, SELF_OR_PROJECT_ADMIN, projects.check_role),
    Route("PUT", _GRANT, PROJECT_ADMIN, projects.grant_role, action="grant role"),
    Route("DELETE", _GRANT, PROJECT_ADMIN, projects.revoke_role, action="revoke role"),
    Route("GET", _SYSTEM_GRANTS, SELF_OR_SITE, projects.list_roles),
    Route("HEAD", _SYSTEM_GRANTS + "/{role_id}", SELF_OR_SITE, projects.check_role),
    Route("GET", _SYSTEM_GRANTS + "/{role_id}", SELF_OR_SITE, projects.check_role),
    Route("PUT", _SYSTEM_GRANTS + "/{role_id}", SITE_ADMIN, projects.grant_role, action="grant role on system"),
    Route("DELETE", _SYSTEM_GRANTS + "/{role_id}", SITE_ADMIN, projects.revoke_role, action="revoke role on system"),
    Route("GET", _USERS, SITE_ADMIN, users.index),
    Route("POST", _USERS, SITE_ADMIN, users.create, limit=LOGINS, action="create user"),
    Route("GET", _USER, SELF_OR_SITE, users.show),
    Route("PATCH", _USER, SITE_ADMIN, users.change, limit=LOGINS, action="change user"),
    Route("DELETE", _USER, SITE_ADMIN, users.delete, action="delete user"),
    Route(
        "POST",
        _USER + "/password",
        FULL_SELF_OR_SITE,
        users.change_password,
        limit=LOGINS,
        action="change password",
    ),
    Route("GET", _USER + "/projects", SELF_OR_SITE, users.projects),
    Route("GET", _USER + "/groups", SELF_OR_SITE, catalog.list_groups),
    Route("GET", _CREDENTIALS, SELF_OR_SITE, users.index_credentials),
    Route(
        "POST",
        _CREDENTIALS,
        FULL_SELF,
        users.create_credential,
        limit=LOGINS,
        action="create application credential",
    ),
    Route("GET", _CREDENTIALS + "/{credential_id}", SELF_OR_SITE, users.show_credential),
    Route(
        "DELETE",
        _CREDENTIALS + "/{credential_id}",
        FULL_SELF,
        users.delete_credential,
        action="delete application credential",
    ),
    Route("GET", _V3 + "/role_assignments", ASSIGNMENTS, projects.index_assignments),
    *catalog.ROUTES,
    Route("GET", _V3 + "/groups", SITE_ADMIN, catalog.list_groups),
]


def _render(failure: Failure) -> Response:
    content = {"code": failure.status, "title": failure.title, "message": failure.message or failure.explanation}
    return Response(failure.status, {"error": content}, failure.headers)


API = Api("identity", ROUTES, _render)
