"""
Drift: reports of agents about checks, and the runs that remediate drift.

A remediation is another run of the same deployment with the same config and inputs. It passes the server's policy, its
maintenance window and the audit log, as every run. The stack of the deployment is neither changed nor locked: its
resource stays complete. A remediation without a lasting effect doubles the pause before the next one.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from datetime import timedelta
from functools import partial
from typing import Any

import structlog

from stoker.deployments import owners, service
from stoker.deployments.checks import REMEDIATE
from stoker.deployments.drift_events import post_drift
from stoker.deployments.env import DeploymentEnv
from stoker.deployments.signals import read_changes
from stoker.model.check import Check, CheckState
from stoker.model.deployment import Deployment
from stoker.model.errors import DeploymentRefused, EntityNotFound
from stoker.model.status import Status
from stoker.store import checks, configs, deployments, rows
from stoker.store.notifier import deployment_topic
from stoker.store.tx import Tx

#: The name that runs, policies and the audit log have for remediations.
REQUESTED_BY = "enforce"
#: The pause after the first remediation; each further one doubles it.
_FIRST_PAUSE, _LONGEST_PAUSE = timedelta(seconds=30), timedelta(hours=6)
_MOST_DOUBLINGS = 20
_LONGEST_REASON = 1000
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
    """
    Record the result of a check. A late report, about an earlier run of the deployment, changes nothing.

    Raises EntityNotFound if the server has no such deployment.
    """
    unlocked = deployments.find(tx, report.deployment_id)
    if unlocked is None or not deployments.is_of(tx, unlocked.id, server_id):
        raise EntityNotFound.of("Software deployment", report.deployment_id)
    deployment = owners.lock(tx, unlocked)
    check = checks.find(tx, deployment.id)
    if check is None or deployment.config_id != report.config_id or deployment.status != Status.COMPLETE:
        return
    configs.secret_inputs(tx, deployment.config_id, deployment.project_id)  # the differences may contain the secrets
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
    """
    Job: start the next remediation if the drift continues.

    ``args``: ``deployment_id``.
    """
    unlocked = deployments.find(tx, args["deployment_id"])
    deployment = owners.lock(tx, unlocked) if unlocked else None
    check = checks.find(tx, deployment.id) if deployment else None
    if deployment is None or check is None or not check.enforce:
        return
    if check.state is not CheckState.DRIFTED:
        return  # another run has started since: the check after it decides
    checks.save(tx, _enforce(tx, env, deployment, check))


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
        changes=tuple(read_changes({"deploy_changes": report.changes})[1]),
        # drift that begins after the pause is a new case; earlier drift is the old one
        remediations=0 if is_drifted and before.drifted_at is None and had_peace else before.remediations,
    )


def _tell(tx: Tx, env: DeploymentEnv, deployment: Deployment, check: Check) -> None:
    """Tell the owner, the config's event sinks, and the log after the commit, that drift has begun or ended."""
    env.listeners.of(deployment).drift_changed(tx, env, deployment, check)
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
    """Start a remediation, or defer it while the pause after the last one continues. Return the changed check."""
    if check.remediate_at is not None and tx.now < check.remediate_at:
        return _postpone(tx, env, check, check.remediate_at)
    pause = min(_FIRST_PAUSE * 2 ** min(check.remediations, _MOST_DOUBLINGS), _LONGEST_PAUSE)
    next_at = tx.now + pause
    if deployment.status == Status.IN_PROGRESS:  # it may wait for a maintenance window
        env.work.defer_once(tx, REMEDIATE, deployment.id, {"deployment_id": deployment.id}, at=next_at)
        return check
    try:
        started = service.restart_run(tx, env, deployment, REQUESTED_BY)
        reason = f"Remediation {check.remediations + 1} has started"
    except DeploymentRefused as error:
        started, reason = deployment, f"The remediation is denied: {error.message}"
    # the job also follows a remediation that fails, after which no check reports
    env.work.defer_once(tx, REMEDIATE, deployment.id, {"deployment_id": deployment.id}, at=next_at)
    env.listeners.of(started).run_restarted(tx, env, started)
    return replace(
        check,
        config_id=started.config_id,
        state=CheckState.DRIFTED,
        reason=reason,
        remediations=check.remediations + 1,
        remediate_at=next_at,
    )


def _postpone(tx: Tx, env: DeploymentEnv, check: Check, at: Any) -> Check:
    env.work.defer_once(tx, REMEDIATE, check.deployment_id, {"deployment_id": check.deployment_id}, at=at)
    number = check.remediations
    times = "Remediation" if number == 1 else f"{number} remediations"
    return replace(check, reason=f"{times} did not last: the next starts at {rows.heat_time(at)}")
