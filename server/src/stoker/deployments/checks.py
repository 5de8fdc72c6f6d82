"""
Checks of deployments: whether a server still is as the last run of a deployment left it.

A check is not a run: it changes nothing on the server, and has neither a history nor a log. The server's own agent
performs it, by its own timer or at a request, and reports changes of state (``deployments.drift``). The functions act
within the caller's write transaction.
"""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime

from msgspec.structs import replace

from stoker.model.deployment import CHECK, Check, CheckSettings, CheckState, Deployment
from stoker.store import checks, deployments, servers
from stoker.store.tx import Tx
from stoker.work import Work

#: Kind of the job that starts the next remediation; its key is the deployment's id.
REMEDIATE = "check.remediate"
_NOT_CHECKED = "Not checked yet"
_RUNS = "Not checked since the last run"


def configure(tx: Tx, work: Work, deployment: Deployment, settings: CheckSettings) -> None:
    """Set how a deployment is checked, tell the agent, and remediate known drift. Triggers run only once."""
    if deployment.trigger_id is not None:
        return
    check = checks.find(tx, deployment.id)
    enforce = bool(settings.enforce)
    if check is None:
        if settings.interval is not None or enforce:
            checks.add(tx, replace(_new(tx, deployment), check_interval=settings.interval, enforce=enforce))
    elif (check.check_interval, check.enforce) == (settings.interval, enforce):
        return
    else:
        checks.save(tx, replace(check, check_interval=settings.interval, enforce=enforce))
        resume(tx, work, deployment)
    tx.bump_document(deployment.server_id)


def resume(tx: Tx, work: Work, deployment: Deployment) -> None:
    """Continue to remediate drift after the stack of the deployment was suspended."""
    check = checks.find(tx, deployment.id)
    if check is not None and check.enforce and check.drifted_at is not None:
        defer_remediation(tx, work, deployment.id)


def defer_remediation(tx: Tx, work: Work, deployment_id: str, at: datetime | None = None) -> None:
    """Start the next remediation of a deployment, not before the time ``at``."""
    work.defer_once(tx, REMEDIATE, deployment_id, {"deployment_id": deployment_id}, at=at)


def reset(tx: Tx, deployment: Deployment) -> None:
    """Forget the last result, because another run of the deployment starts."""
    checks.reset(tx, deployment.config_id, _RUNS, deployment.id)


def request(tx: Tx, ids: Sequence[str]) -> list[Check]:
    """Request checks from the agents, and return them; those that no agent can answer are UNKNOWN with the reason."""
    return [_request(tx, deployments.get(tx, id, for_update=True)) for id in ids]


def _request(tx: Tx, deployment: Deployment) -> Check:
    check = checks.find(tx, deployment.id)
    requested = check or _new(tx, deployment)
    problem = _unanswerable(tx, deployment)
    if problem is None:
        requested = replace(requested, requested_at=tx.now)
        tx.bump_document(deployment.server_id)
    elif requested.state is not CheckState.DRIFTED:
        requested = replace(requested, state=CheckState.UNKNOWN, requested_at=None, reason=problem)
    if check is None:
        checks.add(tx, requested)
    else:
        checks.save(tx, requested)
    return requested


def _unanswerable(tx: Tx, deployment: Deployment) -> str | None:
    """Return why no agent will ever answer a request, or None."""
    server = servers.find(tx, deployment.server_id)
    if server is None:
        return f"Stoker has no server with the id {deployment.server_id}"
    if not server.has_channel:
        return f"The agent of server {server.name} is not Stoker's own: it cannot check"
    if server.last_seen is not None and CHECK not in server.modes:
        return f"The agent of server {server.name} (version {server.agent_version}) is too old for checks: upgrade it"
    if deployment.has_ended and deployment.status != "COMPLETE":
        return f"The last run failed: {deployment.status_reason}"
    return None


def _new(tx: Tx, deployment: Deployment) -> Check:
    return Check(
        deployment_id=deployment.id,
        server_id=deployment.server_id,
        config_id=deployment.config_id,
        since=tx.now,
        reason=_NOT_CHECKED,
    )
