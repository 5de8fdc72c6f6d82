"""What of Keystone's API Stoker speaks."""

from __future__ import annotations

from stoker.http.access import AnyToken, Public
from stoker.http.call import Route
from stoker.http.identity import application_credentials, assignments, auth, ec2_credentials, projects, reads, users

_V3 = "/identity/v3"
_PROJECTS, _USERS = _V3 + "/projects", _V3 + "/users"
_PROJECT, _USER = _PROJECTS + "/{project_id}", _USERS + "/{user_id}"
_GRANT = _PROJECT + "/users/{user_id}/roles/{role_id}"
_CREDENTIALS = _USER + "/application_credentials"
_EC2 = _USER + "/credentials/OS-EC2"
_LOGGED_IN = AnyToken()

ROUTES = [
    Route("GET", "/identity", Public(), reads.versions),
    Route("GET", _V3, Public(), reads.version),
    Route("POST", _V3 + "/auth/tokens", Public(), auth.log_in),
    Route("GET", _V3 + "/auth/tokens", _LOGGED_IN, auth.show),
    Route("HEAD", _V3 + "/auth/tokens", _LOGGED_IN, auth.show),
    Route("DELETE", _V3 + "/auth/tokens", _LOGGED_IN, auth.revoke),
    Route("GET", _V3 + "/auth/catalog", _LOGGED_IN, auth.catalog),
    Route("GET", _V3 + "/auth/projects", _LOGGED_IN, auth.projects),
    Route("GET", _V3 + "/auth/domains", _LOGGED_IN, auth.domains),
    Route("GET", _PROJECTS, _LOGGED_IN, projects.index),
    Route("POST", _PROJECTS, _LOGGED_IN, projects.create),
    Route("GET", _PROJECT, _LOGGED_IN, projects.show),
    Route("PATCH", _PROJECT, _LOGGED_IN, projects.change),
    Route("DELETE", _PROJECT, _LOGGED_IN, projects.delete),
    Route("GET", _PROJECT + "/users/{user_id}/roles", _LOGGED_IN, assignments.of_user),
    Route("HEAD", _GRANT, _LOGGED_IN, assignments.check),
    Route("GET", _GRANT, _LOGGED_IN, assignments.check),
    Route("PUT", _GRANT, _LOGGED_IN, assignments.grant),
    Route("DELETE", _GRANT, _LOGGED_IN, assignments.revoke),
    Route("GET", _USERS, _LOGGED_IN, users.index),
    Route("POST", _USERS, _LOGGED_IN, users.create),
    Route("GET", _USER, _LOGGED_IN, users.show),
    Route("PATCH", _USER, _LOGGED_IN, users.change),
    Route("DELETE", _USER, _LOGGED_IN, users.delete),
    Route("POST", _USER + "/password", _LOGGED_IN, users.change_password),
    Route("GET", _USER + "/projects", _LOGGED_IN, users.projects),
    Route("GET", _CREDENTIALS, _LOGGED_IN, application_credentials.index),
    Route("POST", _CREDENTIALS, _LOGGED_IN, application_credentials.create),
    Route("GET", _CREDENTIALS + "/{credential_id}", _LOGGED_IN, application_credentials.show),
    Route("DELETE", _CREDENTIALS + "/{credential_id}", _LOGGED_IN, application_credentials.delete),
    Route("GET", _EC2, _LOGGED_IN, ec2_credentials.index),
    Route("POST", _EC2, _LOGGED_IN, ec2_credentials.create),
    Route("GET", _EC2 + "/{access}", _LOGGED_IN, ec2_credentials.show),
    Route("DELETE", _EC2 + "/{access}", _LOGGED_IN, ec2_credentials.delete),
    Route("POST", _V3 + "/ec2tokens", _LOGGED_IN, ec2_credentials.log_in),
    Route("GET", _V3 + "/domains", _LOGGED_IN, auth.domains),
    Route("GET", _V3 + "/domains/{domain_id}", _LOGGED_IN, reads.show_domain),
    Route("GET", _V3 + "/roles", _LOGGED_IN, assignments.roles),
    Route("POST", _V3 + "/roles", _LOGGED_IN, assignments.create_role),
    Route("GET", _V3 + "/roles/{role_id}", _LOGGED_IN, assignments.show_role),
    Route("GET", _V3 + "/role_assignments", _LOGGED_IN, assignments.index),
    Route("GET", _V3 + "/services", _LOGGED_IN, reads.services),
    Route("GET", _V3 + "/endpoints", _LOGGED_IN, reads.endpoints),
    Route("GET", _V3 + "/regions", _LOGGED_IN, reads.regions),
]
