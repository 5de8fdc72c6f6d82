"""
The entries that requests leave in the audit log: the action of the route, and the objects that the handler names.

A route with an ``action`` leaves an entry for each successful request of a person, in the handler's transaction. Runs
leave theirs when they start (``policy.authorizer``), and refused requests in a transaction of their own.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING

from stoker.model.audit import SITE, Decision, Outcome
from stoker.model.principal import Project, User
from stoker.store import audit, identity
from stoker.store.tx import Tx

if TYPE_CHECKING:
    from stoker.http.request import RequestContext
    from stoker.model.deployment import Deployment
    from stoker.model.principal import Principal
    from stoker.store.open import Store

_NAMED: Mapping[str, Callable[[Tx, str], User | Project | None]] = {
    "user_id": identity.user,
    "project_id": identity.project,
}
#: Segments of a path that are part of another column, or say nothing.
_OTHER = ("project", "stack_name", "stack_id", "resource_name", "deployment_id", "config_id", "server")


def describe_path(tx: Tx, request: RequestContext) -> None:
    """Name the users and projects of the path, before the handler deletes them."""
    parts = []
    for name, value in request.path.items():
        named = _NAMED[name](tx, value) if name in _NAMED else None
        if name not in _OTHER:
            parts.append(value if named is None else named.name)
    request.subject.detail = " ".join(parts)


def record(tx: Tx, request: RequestContext, action: str = "") -> None:
    """
    Add the request to the audit log, with the route's action unless another ``action`` is given.

    Requests of the users of resources and of signal URLs leave none: agents send them all the time.
    """
    principal, subject, path = request.caller.principal, request.subject, request.path
    if principal is None or principal.resource_id is not None:
        return
    decision = Decision(
        project_id=path.get("project") or SITE,
        actor=principal.user_name,
        action=action or request.route.action,
        outcome=Outcome.ALLOWED,
        reason=tx.secrets.redact(subject.detail),
        server_id=subject.server_id,
        server_name=subject.server_name or path.get("server"),
        deployment_id=subject.deployment_id or path.get("deployment_id"),
        stack_id=subject.stack_id or path.get("stack_id"),
        stack_name=subject.stack_name or path.get("stack_name"),
        resource_name=subject.resource_name or path.get("resource_name"),
        config_name=subject.config_name or path.get("config_id"),
    )
    audit.add(tx, decision)


def describe_deployment(tx: Tx, request: RequestContext, deployment: Deployment) -> None:
    """Name the deployment and its objects as those that the request concerns."""
    subject, names = request.subject, audit.names_of(tx, deployment.id)
    subject.server_id, subject.stack_id = deployment.server_id, deployment.stack_id
    subject.server_name, subject.stack_name = names.get("server_name"), names.get("stack_name")
    subject.resource_name, subject.config_name = names.get("resource_name"), names.get("config_name")


def record_forbidden(store: Store, principal: Principal, action: str, reason: str) -> None:
    """Add a request to the audit log that the access rule of its route refused."""
    _record_alone(store, principal, action, Outcome.REFUSED, reason)


def record_login(store: Store, principal: Principal, address: str) -> None:
    """Add a login to the audit log."""
    _record_alone(store, principal, "log in", Outcome.ALLOWED, f"from {address}")


def record_failed_login(store: Store, name: str, address: str, problem: str) -> None:
    """Add a failed login to the audit log of the site. Limits of failed logins also limit the number of entries."""
    decision = Decision(
        project_id=SITE, actor=name, action="log in", outcome=Outcome.REFUSED, reason=f"from {address}: {problem}"
    )
    store.write(lambda tx: audit.add(tx, decision))


def _record_alone(store: Store, principal: Principal, action: str, outcome: Outcome, reason: str) -> None:
    if principal.resource_id is not None:
        return
    decision = Decision(
        project_id=principal.project_id or SITE,
        actor=principal.user_name,
        action=action,
        outcome=outcome,
        reason=reason,
    )
    store.write(lambda tx: audit.add(tx, decision))
