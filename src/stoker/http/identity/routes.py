"""Routes of the identity API, a subset of Keystone's, with their access rules."""

from __future__ import annotations

from stoker.http.access import AnyToken, Public, SiteAdmin
from stoker.http.identity import application_credentials, assignments, auth, catalog, ec2_credentials, projects, users
from stoker.http.identity.access import (
    Assignments,
    OwnOrSiteAdmin,
    ProjectAdmin,
    Self,
    SelfOrProjectAdmin,
    SelfOrSiteAdmin,
)
from stoker.http.request_context import Route
from stoker.http.threads import LOGINS

_V3 = "/identity/v3"
_PROJECTS, _USERS = _V3 + "/projects", _V3 + "/users"
_PROJECT, _USER = _PROJECTS + "/{project_id}", _USERS + "/{user_id}"
_GRANT = _PROJECT + "/users/{user_id}/roles/{role_id}"
_CREDENTIALS = _USER + "/application_credentials"
_EC2 = _USER + "/credentials/OS-EC2"
_SYSTEM_GRANTS = _V3 + "/system/users/{user_id}/roles"
_LOGGED_IN = AnyToken()
#: Maximum bytes of a request without a token; a password has at most 4,096 characters.
_LOGIN_LIMIT = 64 * 1024
_OWN = OwnOrSiteAdmin()
_SITE = SiteAdmin()
_PROJECT_ADMIN = ProjectAdmin()
_SELF_OR_SITE = SelfOrSiteAdmin()
#: For requests with which a caller could gain more rights than the token has.
_FULL_SELF, _FULL_SELF_OR_SITE = Self(unrestricted=True), SelfOrSiteAdmin(unrestricted=True)

ROUTES = [
    Route("GET", "/identity", Public(), catalog.versions),
    Route("GET", _V3, Public(), catalog.version),
    Route("POST", _V3 + "/auth/tokens", Public(), auth.log_in, _LOGIN_LIMIT, executor=LOGINS),
    Route("GET", _V3 + "/auth/tokens", _OWN, auth.show),
    Route("HEAD", _V3 + "/auth/tokens", _OWN, auth.show),
    Route("DELETE", _V3 + "/auth/tokens", _OWN, auth.revoke),
    Route("GET", _V3 + "/auth/catalog", _LOGGED_IN, catalog.show),
    Route("GET", _V3 + "/auth/projects", _LOGGED_IN, auth.projects),
    Route("GET", _V3 + "/auth/domains", _LOGGED_IN, catalog.domains),
    Route("GET", _PROJECTS, _OWN, projects.index),
    Route("POST", _PROJECTS, _SITE, projects.create),
    Route("GET", _PROJECT, _OWN, projects.show),
    Route("PATCH", _PROJECT, _SITE, projects.change),
    Route("DELETE", _PROJECT, _SITE, projects.delete),
    Route("GET", _PROJECT + "/users/{user_id}/roles", SelfOrProjectAdmin(), assignments.of_user),
    Route("HEAD", _GRANT, SelfOrProjectAdmin(), assignments.check),
    Route("GET", _GRANT, SelfOrProjectAdmin(), assignments.check),
    Route("PUT", _GRANT, _PROJECT_ADMIN, assignments.grant),
    Route("DELETE", _GRANT, _PROJECT_ADMIN, assignments.revoke),
    Route("GET", _SYSTEM_GRANTS, _SELF_OR_SITE, assignments.of_user_on_system),
    Route("HEAD", _SYSTEM_GRANTS + "/{role_id}", _SELF_OR_SITE, assignments.check_on_system),
    Route("GET", _SYSTEM_GRANTS + "/{role_id}", _SELF_OR_SITE, assignments.check_on_system),
    Route("PUT", _SYSTEM_GRANTS + "/{role_id}", _SITE, assignments.grant_on_system),
    Route("DELETE", _SYSTEM_GRANTS + "/{role_id}", _SITE, assignments.revoke_on_system),
    Route("GET", _USERS, _SITE, users.index),
    Route("POST", _USERS, _SITE, users.create),
    Route("GET", _USER, _SELF_OR_SITE, users.show),
    Route("PATCH", _USER, _SITE, users.change),
    Route("DELETE", _USER, _SITE, users.delete),
    Route("POST", _USER + "/password", _FULL_SELF_OR_SITE, users.change_password),
    Route("GET", _USER + "/projects", _SELF_OR_SITE, users.projects),
    Route("GET", _CREDENTIALS, _SELF_OR_SITE, application_credentials.index),
    Route("POST", _CREDENTIALS, _FULL_SELF, application_credentials.create),
    Route("GET", _CREDENTIALS + "/{credential_id}", _SELF_OR_SITE, application_credentials.show),
    Route("DELETE", _CREDENTIALS + "/{credential_id}", _FULL_SELF, application_credentials.delete),
    Route("GET", _EC2, _FULL_SELF_OR_SITE, ec2_credentials.index),
    Route("POST", _EC2, _FULL_SELF_OR_SITE, ec2_credentials.create),
    Route("GET", _EC2 + "/{access}", _FULL_SELF_OR_SITE, ec2_credentials.show),
    Route("DELETE", _EC2 + "/{access}", _FULL_SELF_OR_SITE, ec2_credentials.delete),
    Route("POST", _V3 + "/ec2tokens", _SITE, ec2_credentials.log_in),
    Route("GET", _V3 + "/domains", _LOGGED_IN, catalog.domains),
    Route("GET", _V3 + "/domains/{domain_id}", _LOGGED_IN, catalog.show_domain),
    Route("GET", _V3 + "/roles", _LOGGED_IN, assignments.roles),
    Route("POST", _V3 + "/roles", _SITE, assignments.create_role),
    Route("GET", _V3 + "/roles/{role_id}", _LOGGED_IN, assignments.show_role),
    Route("GET", _V3 + "/role_assignments", Assignments(), assignments.index),
    Route("GET", _V3 + "/services", _LOGGED_IN, catalog.services),
    Route("GET", _V3 + "/endpoints", _LOGGED_IN, catalog.endpoints),
    Route("GET", _V3 + "/regions", _LOGGED_IN, catalog.regions),
]
