"""
Access rules of CloudFormation's API, for authenticated callers.

A signature may be in the body, so the route admits every caller (``http.access.SIGNED``) and the handler authenticates.
"""

from __future__ import annotations

from stoker.http.access import AGENT, MEMBER, READER, with_implied_roles
from stoker.model.errors import Forbidden
from stoker.model.principal import Principal
from stoker.model.stack import Resource, Stack

#: Who may read stacks, and who may read the resource that is the caller's own, too.
READERS, READERS_AND_AGENTS = with_implied_roles(READER), with_implied_roles(READER, AGENT)
_SIGNALLERS = with_implied_roles(MEMBER)


def check_roles(principal: Principal, roles: frozenset[str]) -> None:
    """Raise Forbidden unless the principal has one of the roles."""
    if roles.isdisjoint(principal.roles):
        raise _forbidden()


def check_signal(principal: Principal, stack: Stack | None, resource: Resource | None) -> None:
    """
    Raise Forbidden unless the principal is the user of the resource, or a member of the project of its stack.

    Also for a missing resource, so that callers cannot find out which resources exist.
    """
    if principal.resource_id is not None:
        allowed = resource is not None and principal.resource_id == resource.id
    else:
        allowed = stack is not None and stack.project_id == principal.project_id
        allowed = allowed and not _SIGNALLERS.isdisjoint(principal.roles)
    if not allowed:
        raise _forbidden()


def _forbidden() -> Forbidden:
    return Forbidden("You are not authorized to complete this action.")
