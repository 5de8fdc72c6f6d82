"""
The entries that requests leave in the audit log: the action of the route, and the objects that the handler names.

A route with an ``action`` leaves an entry for each successful request of a person, in the handler's transaction. Runs
leave theirs when they start (``policy.authorizer``), refused requests in a transaction of their own. Actions of agents
are recorded where they concern the identity of a server or a refused document.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, TypeVar

from stoker.model.audit import Decision, Outcome
from stoker.model.errors import Unauthorized
from stoker.model.ids import SITE
from stoker.model.principal import Project, User
from stoker.policy import authorizer
from stoker.store import audit, identity
from stoker.store.tx import Tx

if TYPE_CHECKING:
    from stoker.http.request import RequestContext
    from stoker.model.deployment import Deployment
    from stoker.model.principal import Principal
    from stoker.model.server import Server
    from stoker.store.open import Store

T = TypeVar("T")
_NAMED: Mapping[str, Callable[[Tx, str], User | Project | None]] = {
    "user_id": identity.user,
    "project_id": identity.project,
}
#: Columns of the audit log, with the segments of paths that name the same object unless the handler names it.
_COLUMNS = {
    "server_id": "server_id",
    "server_name": "server",
    "deployment_id": "deployment_id",
    "stack_id": "stack_id",
    "stack_name": "stack_name",
    "resource_name": "resource_name",
    "config_name": "config_id",
}
#: Segments of a path that are part of another column, or say nothing.
_OTHER = ("project", *_COLUMNS.values())


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
    Add the request to the audit log with its subject, and with the route's action unless another one is given.

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
        **{column: getattr(subject, column) or path.get(segment) for column, segment in _COLUMNS.items()},
    )
    authorizer.record(tx, decision)


def record_agent(tx: Tx, server: Server, action: str, reason: str, outcome: Outcome = Outcome.ALLOWED) -> None:
    """Add an action of the server's agent to the audit log."""
    decision = Decision(
        project_id=server.project_id,
        actor=f"the agent of {server.name}",
        action=action,
        outcome=outcome,
        reason=reason,
        server_id=server.id,
        server_name=server.name,
    )
    authorizer.record(tx, decision)


def describe_server(request: RequestContext, server: Server, detail: str = "") -> None:
    """Name the server as the one that the request concerns."""
    request.subject.server_id, request.subject.server_name = server.id, server.name
    request.subject.detail = detail


def describe_deployment(tx: Tx, request: RequestContext, deployment: Deployment) -> None:
    """Name the deployment and its objects as those that the request concerns."""
    subject, names = request.subject, audit.names_of(tx, deployment.id)
    subject.server_id, subject.stack_id = deployment.server_id, deployment.stack_id
    subject.server_name, subject.stack_name = names.get("server_name"), names.get("stack_name")
    subject.resource_name, subject.config_name = names.get("resource_name"), names.get("config_name")


def audit_login(store: Store, name: str, address: str, log_in: Callable[[], T], user: Callable[[T], Principal]) -> T:
    """
    Return the result of ``log_in``, with an entry in the audit log, also if it raises Unauthorized.

    ``name`` is whom the login names, ``user`` returns the principal of the result.
    """
    try:
        result = log_in()
    except Unauthorized as refused:
        record_failed_login(store, name, address, refused.message)
        raise
    record_user(store, user(result), "log in", Outcome.ALLOWED, f"from {address}")
    return result


def record_failed_login(store: Store, name: str, address: str, problem: str) -> None:
    """Add a failed login to the audit log of the site. Limits of failed logins also limit the number of entries."""
    reason = f"from {address}: {problem}"
    record_alone(store, Decision(project_id=SITE, actor=name, action="log in", outcome=Outcome.REFUSED, reason=reason))


def record_alone(store: Store, decision: Decision) -> None:
    """Add an entry in a transaction of its own, because the request has none or its transaction is rolled back."""
    store.write(lambda tx: authorizer.record(tx, decision))


def record_user(store: Store, principal: Principal, action: str, outcome: Outcome, reason: str) -> None:
    """As ``record_alone``, for a user. Requests of the users of resources leave no entry."""
    if principal.resource_id is None:
        project_id, actor = principal.project_id or SITE, principal.user_name
        decision = Decision(project_id=project_id, actor=actor, action=action, outcome=outcome, reason=reason)
        record_alone(store, decision)
