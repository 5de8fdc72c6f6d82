"""
Drift: reports of agents about checks, their events, and the runs that remediate drift.

A remediation is another run of the same deployment with the same config and inputs. It passes the server's policy, its
maintenance window and the audit log, as every run. The stack of the deployment is not changed: its resource stays
complete. A remediation without a lasting effect doubles the pause before the next one. While the stack is suspended, no
remediation starts.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import timedelta
from functools import partial
from typing import Any
from uuid import uuid4

import structlog
from msgspec.structs import replace

from stoker.deployments import owners, service
from stoker.deployments.checks import defer_remediation
from stoker.deployments.configs import EVENT_SINKS
from stoker.deployments.owners import DeploymentEnv
from stoker.deployments.runs import CHANGES, read_changes
from stoker.hot.environment import list_sinks
from stoker.hot.words import list_few
from stoker.model.config import Config
from stoker.model.deployment import Check, CheckState, Deployment, DriftChanged
from stoker.model.errors import Conflict, DeploymentRefused, EntityNotFound
from stoker.model.stack import Action, Status
from stoker.store import checks, configs, deployments, resources, rows, servers, stacks
from stoker.store.notifier import deployment_topic
from stoker.store.tx import Tx

#: The name that runs, policies and the audit log have for remediations.
REQUESTED_BY = "enforce"
#: The pause after the first remediation; each further one doubles it.
_FIRST_PAUSE, _LONGEST_PAUSE = timedelta(seconds=30), timedelta(hours=6)
_MOST_DOUBLINGS = 20
_LONGEST_REASON = 1000
_PAUSED = "Paused: the stack is suspended"
_log = structlog.get_logger("stoker.deployments")


@dataclass(frozen=True, slots=True, kw_only=True)
class CheckReport:
    """The result of a check, as an agent reports it."""

    deployment_id: str
    config_id: str
    state: CheckState
    reason: str = ""
    #: As the hook reported them.
    changes: Any = ()
    #: The request that the check answers, as the document named it.
    requested: int | None = None


def apply_report(tx: Tx, env: DeploymentEnv, server_id: str, report: CheckReport) -> None:
    """Record the result of a check of the current run. Raises EntityNotFound if the server has no such deployment."""
    unlocked = deployments.find(tx, report.deployment_id)
    if unlocked is None or not deployments.is_of(tx, unlocked.id, server_id):
        raise EntityNotFound.of("Software deployment", report.deployment_id)
    deployment = owners.lock(tx, unlocked)
    check = checks.find(tx, deployment.id)
    if check is None or deployment.config_id != report.config_id or deployment.status != Status.COMPLETE:
        return
    configs.learn_secrets(tx, deployment.config_id)  # the differences may contain the secrets
    after = _record(tx, check, report)
    if after.drifted_at != check.drifted_at:
        _tell(tx, env, deployment, after)
    if after.state is CheckState.DRIFTED and after.enforce:
        after = _enforce(tx, env, deployment, after)
    checks.save(tx, after)
    tx.notify(deployment_topic(deployment.id))
    if check.requested_at is not None:
        tx.bump_document(deployment.server_id)


def remediate(tx: Tx, env: DeploymentEnv, args: Mapping[str, Any]) -> None:
    """Job: start the next remediation of the deployment ``deployment_id`` if the drift continues."""
    deployment = owners.find_locked(tx, args["deployment_id"])
    check = checks.find(tx, deployment.id) if deployment else None
    if deployment is None or check is None or not check.enforce:
        return
    if check.state is not CheckState.DRIFTED and not _awaits_repair(deployment, check):
        return  # another run has started since: the check after it decides
    checks.save(tx, _enforce(tx, env, deployment, check))


def repair(tx: Tx, env: DeploymentEnv, deployment: Deployment, requested_by: str) -> Deployment:
    """Start a remediation for a user. Raises Conflict if nothing drifted, runs or is suspended, DeploymentRefused."""
    deployment = owners.lock(tx, deployment)
    check = checks.find(tx, deployment.id)
    if deployment.status == Status.IN_PROGRESS:
        raise Conflict(f"The deployment ({deployment.id}) is running: {deployment.status_reason}")
    if check is None or check.state is not CheckState.DRIFTED:
        state = check.state if check is not None else "never checked"
        raise Conflict(f"The deployment ({deployment.id}) is {state}: only what has drifted is repaired.")
    if _is_suspended(tx, deployment):
        raise Conflict(f"The deployment ({deployment.id}) is suspended: resume its stack first.")
    return service.run_again(tx, env, deployment, requested_by)


def _awaits_repair(deployment: Deployment, check: Check) -> bool:
    """
    Return whether a user's run of what has drifted has not succeeded: no check follows a run that fails. A run of the
    stack, which fails its resource, is repeated by the stack.
    """
    is_of_user = deployment.requested_by is not None
    return check.drifted_at is not None and is_of_user and deployment.status != Status.COMPLETE


def _record(tx: Tx, before: Check, report: CheckReport) -> Check:
    """Return the check with the reported result."""
    is_drifted, is_in_sync = report.state is CheckState.DRIFTED, report.state is CheckState.IN_SYNC
    is_answer = before.requested_at is not None and report.requested == rows.to_micros(before.requested_at)
    drifted_at = (before.drifted_at or tx.now) if is_drifted else None if is_in_sync else before.drifted_at
    had_peace = before.remediate_at is None or tx.now >= before.remediate_at
    return replace(
        before,
        config_id=report.config_id,
        state=report.state,
        since=before.since if report.state is before.state else tx.now,
        checked_at=tx.now,
        requested_at=None if is_answer else before.requested_at,
        drifted_at=drifted_at,
        reason=report.reason.replace("\0", "")[:_LONGEST_REASON],
        changes=tuple(read_changes({CHANGES: tx.secrets.redact(report.changes)})[1]),
        # drift that begins after the pause is a new case; earlier drift is the old one
        remediations=0 if is_drifted and before.drifted_at is None and had_peace else before.remediations,
    )


def _tell(tx: Tx, env: DeploymentEnv, deployment: Deployment, check: Check) -> None:
    """Tell the owner, the config's event sinks, and the log after the commit, that drift has begun or ended."""
    tx.wake(deployment.owner, DriftChanged(check))
    post_drift(tx, env, deployment, check)
    fields = {
        "deployment_id": deployment.id,
        "server_id": deployment.server_id,
        "stack_id": deployment.stack_id,
        "project_id": deployment.project_id,
    }
    if check.drifted_at is not None:
        tx.after_commit(partial(_log.warning, "drift.began", **fields))
    else:
        tx.after_commit(partial(_log.info, "drift.ended", **fields))


def _enforce(tx: Tx, env: DeploymentEnv, deployment: Deployment, check: Check) -> Check:
    """
    Start a remediation, or defer it during the pause after the last one. Return the changed check. While the owner is
    suspended, none starts: ``checks.resume`` continues.
    """
    if _is_suspended(tx, deployment):
        return replace(check, reason=_PAUSED)
    if check.remediate_at is not None and tx.now < check.remediate_at:
        return _postpone(tx, env, check, check.remediate_at)
    pause = min(_FIRST_PAUSE * 2 ** min(check.remediations, _MOST_DOUBLINGS), _LONGEST_PAUSE)
    next_at = tx.now + pause
    if deployment.status == Status.IN_PROGRESS:  # it may wait for a maintenance window
        defer_remediation(tx, env.work, deployment.id, next_at)
        return check
    try:
        started = service.run_again(tx, env, deployment, REQUESTED_BY)
        reason = f"Remediation {check.remediations + 1} has started"
    except DeploymentRefused as error:
        started, reason = deployment, f"The remediation is denied: {error.message}"
    # the job also follows a remediation that fails, after which no check reports
    defer_remediation(tx, env.work, deployment.id, next_at)
    return replace(
        check,
        config_id=started.config_id,
        state=CheckState.DRIFTED,
        reason=reason,
        remediations=check.remediations + 1,
        remediate_at=next_at,
    )


def _is_suspended(tx: Tx, deployment: Deployment) -> bool:
    """Return whether the deployment's resource is suspended, its stack or an ancestor, or being so."""
    resource = resources.find(tx, deployment.resource_id) if deployment.resource_id is not None else None
    stack = stacks.find(tx, resource.stack_id) if resource else None
    if resource is not None and resource.action is Action.SUSPEND:
        return True
    while stack is not None and stack.action is not Action.SUSPEND:
        stack = stacks.find(tx, stack.parent_id) if stack.parent_id else None
    return stack is not None


def _postpone(tx: Tx, env: DeploymentEnv, check: Check, at: Any) -> Check:
    defer_remediation(tx, env.work, check.deployment_id, at)
    number = check.remediations
    times = "Remediation" if number == 1 else f"{number} remediations"
    return replace(check, reason=f"{times} did not last: the next starts at {rows.heat_time(at)}")


#: The number of differences that an event names.
_SHOWN_ITEMS = 5


def post_drift(tx: Tx, env: DeploymentEnv, deployment: Deployment, check: Check) -> None:
    """Post begin or end of drift to the config's sinks, except for queues that receive the stack's events."""
    config = configs.find(tx, deployment.config_id)
    sinks = list_sinks(config.options.get(EVENT_SINKS)) if config else ()
    if config is None or not sinks:
        return
    stack = stacks.find(tx, deployment.stack_id) if deployment.stack_id else None
    of_stack = {sink["target"] for sink in stack.event_sinks} if stack else set()
    message = _format_message(tx, deployment, config, check)
    for sink in sinks:
        if sink.queue not in of_stack:
            env.post_events(tx, deployment.project_id, sink.queue, [message], sink.ttl)


def describe_drift(check: Check) -> str:
    """Return what happened, with the names of the first differences."""
    if check.drifted_at is None:
        return "drift ended: the server is in sync"
    items = list_few((str(change.get("item") or "?") for change in check.changes), _SHOWN_ITEMS)
    return f"drift began: {items}" if items else "drift began"


def _format_message(tx: Tx, deployment: Deployment, config: Config, check: Check) -> dict[str, Any]:
    server = servers.find(tx, deployment.server_id)
    is_own = server is not None and server.project_id == deployment.project_id
    return {
        "timestamp": rows.heat_time(tx.now),
        "version": "0.1",
        "type": "stoker.drift",
        "id": str(uuid4()),
        "payload": {
            "deployment_id": deployment.id,
            "name": config.name,
            "server_id": deployment.server_id,
            "server_name": server.name if server and is_own else None,
            "stack_id": deployment.stack_id,
            "state": CheckState.IN_SYNC if check.drifted_at is None else CheckState.DRIFTED,
            "reason": tx.secrets.redact(describe_drift(check)),
        },
    }
