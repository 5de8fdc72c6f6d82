"""What of Keystone's API Stoker speaks."""

from __future__ import annotations

from stoker.http.access import AnyToken, Public
from stoker.http.call import Route
from stoker.http.identity import auth, reads

_V3 = "/identity/v3"
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
    Route("GET", _V3 + "/projects", _LOGGED_IN, reads.list_projects),
    Route("GET", _V3 + "/projects/{project_id}", _LOGGED_IN, reads.show_project),
    Route("GET", _V3 + "/users", _LOGGED_IN, reads.list_users),
    Route("GET", _V3 + "/users/{user_id}", _LOGGED_IN, reads.show_user),
    Route("GET", _V3 + "/users/{user_id}/projects", _LOGGED_IN, reads.user_projects),
    Route("GET", _V3 + "/domains", _LOGGED_IN, auth.domains),
    Route("GET", _V3 + "/domains/{domain_id}", _LOGGED_IN, reads.show_domain),
    Route("GET", _V3 + "/roles", _LOGGED_IN, reads.roles),
    Route("GET", _V3 + "/services", _LOGGED_IN, reads.services),
    Route("GET", _V3 + "/endpoints", _LOGGED_IN, reads.endpoints),
    Route("GET", _V3 + "/regions", _LOGGED_IN, reads.regions),
]
