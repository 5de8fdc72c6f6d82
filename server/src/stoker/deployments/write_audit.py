"""Audit log entries for writes to containers and queues that belong to servers and deployments."""

from __future__ import annotations

from stoker.model.audit import Decision, Outcome
from stoker.model.errors import WriteRefused
from stoker.policy import authorizer
from stoker.store import deployments, resources, servers, stacks
from stoker.store.tx import Tx


def record_refusal(tx: Tx, refused: WriteRefused, *, actor: str | None, action: str) -> None:
    """
    Record a refused write to a container or queue by a user, or None if unauthenticated; ``action``: such as ``PUT
    container``, or the name of a type.
    """
    authorizer.record(
        tx,
        Decision(
            project_id=refused.project_id,
            actor=actor,
            action=action,
            outcome=Outcome.REFUSED,
            reason=refused.message,
            **_find_subject(tx, refused.owner),
        ),
    )


def record_signal(
    tx: Tx,
    project_id: str,
    name: str,
    channel: str,
    *,
    deployment_id: str | None = None,
    stack_id: str | None = None,
) -> None:
    """Record a signal by ``channel``, such as ``queue``, which the agent of the resource ``name`` wrote."""
    authorizer.record(
        tx,
        Decision(
            project_id=project_id,
            actor=f"the agent of {name}",
            action=f"signal by {channel}",
            outcome=Outcome.ALLOWED,
            reason="Written with a login or a pre-signed URL that Stoker made for it.",
            deployment_id=deployment_id,
            stack_id=stack_id,
        ),
    )


def _find_subject(tx: Tx, owner: str) -> dict[str, str | None]:
    """Return the ids of the objects that an owner's id refers to, by the fields of an audit entry."""
    resource = resources.find(tx, owner)
    if resource is not None:
        id = resource.physical_id or resource.id
        if servers.find(tx, id) is not None:
            return {"server_id": id, "stack_id": resource.stack_id}
        is_deployment = deployments.find(tx, id) is not None
        return {"deployment_id": id if is_deployment else None, "stack_id": resource.stack_id}
    if stacks.find(tx, owner) is not None:
        return {"stack_id": owner}
    return {"deployment_id": owner}
