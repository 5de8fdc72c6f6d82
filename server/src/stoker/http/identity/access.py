"""Access rules of the identity API."""

from __future__ import annotations

from stoker.http.access import ADMIN, TOKEN, Access, Attempt, Caller, Predicate, site_admin
from stoker.http.request import RequestContext
from stoker.model.principal import Principal


def _self(caller: Caller, attempt: Attempt) -> bool:
    return caller.principal is not None and attempt.path["user_id"] == caller.principal.user_id


def _full_self(caller: Caller, attempt: Attempt) -> bool:
    """Restricted application credentials and the users of resources may not gain more rights than the token has."""
    principal = caller.principal
    is_limited = principal is None or principal.restricted or principal.resource_id is not None
    return not is_limited and _self(caller, attempt)


def _project_admin(caller: Caller, attempt: Attempt) -> bool:
    return caller.principal is not None and _administers(caller.principal, attempt.path["project_id"])


def _assignments(caller: Caller, attempt: Attempt) -> bool:
    """Users may query their own roles, project administrators the roles in their project, site administrators all."""
    query, principal = attempt.request.query_params, caller.principal
    if principal is None:
        return False
    return query.get("user.id") == principal.user_id or _administers(principal, query.get("scope.project.id"))


def _any_of(*predicates: Predicate) -> Access:
    return Access(TOKEN, allow=lambda caller, attempt: any(allow(caller, attempt) for allow in predicates))


SELF_OR_SITE = _any_of(_self, site_admin)
#: For requests with which a caller could gain more rights than the token has.
FULL_SELF, FULL_SELF_OR_SITE = _any_of(_full_self), _any_of(_full_self, site_admin)
PROJECT_ADMIN = _any_of(_project_admin)
#: The handler limits a user that is no administrator to projects in which the user has a role (``is_administrator``).
SELF_OR_PROJECT_ADMIN = _any_of(_self, _project_admin)
ASSIGNMENTS = _any_of(_assignments)
#: Every logged-in user. The handler limits users to their own objects (``limit_of``).
OWN_OR_SITE = Access(TOKEN)


def limit_of(request: RequestContext) -> str | None:
    """Return the id of the user whose objects the request is limited to; None: a site administrator's, of all users."""
    return None if request.user.site_admin else request.user.user_id


def is_administrator(request: RequestContext) -> bool:
    return _administers(request.user, request.path["project_id"])


def _administers(principal: Principal, project_id: str | None) -> bool:
    if principal.site_admin:
        return True
    own = project_id is not None and project_id == principal.project_id
    return own and ADMIN in principal.roles and not principal.restricted
