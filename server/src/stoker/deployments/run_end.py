"""
Ends of runs: by a report, a cancellation, a deadline or a client, and the removal of deployments.

Agents report in batches: each report is applied as a single signal is, but their rows are read and locked together, and
their writes follow with the next query. The owners of the runs advance at the end of the transaction (``Tx.wake``): a
trigger counts all of its ended targets at once.

A deadline is a job that fails a run whose result does not arrive in time. The time of a run begins with its start,
which agents report that are connected to Stoker. Other agents report no start, so the time of their runs begins with
the request.

``fail``, ``cancel`` and ``force_fail`` do not tell the deployment's owner: ``tell_end`` does, unless the owner itself
ends the run.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Any

from msgspec.structs import replace

from stoker.deployments import log_storage, owners, runs
from stoker.deployments.derive import TIMEOUT
from stoker.deployments.owners import DeploymentEnv, client_target
from stoker.deployments.runs import ALWAYS, CHANGES, RUN, is_progress, read_code, resolve_signal
from stoker.model.deployment import CANCELLED, OWN_CHANNEL, Deployment, RunEnded, RunState
from stoker.model.errors import EntityNotFound
from stoker.model.stack import Status
from stoker.store import checks, configs, deployments, servers, stacks, targets, triggers
from stoker.store.deployments import RunOwner
from stoker.store.notifier import deployment_topic, project_topic
from stoker.store.tx import Tx
from stoker.transports.base import needs_provisioning
from stoker.work import Work

#: Kind of the job that fails a run when its deadline passes.
DEADLINE = "deployment.deadline"
#: Time after the agent's own timeout. The agent stops the hook itself; the server fails the run only if no result
#: arrives.
GRACE = timedelta(seconds=15)
#: The transport of agents that report the start of a run.
_REPORTS_START = "STOKER_SIGNAL"
#: Entry of the job's arguments: the timeout includes the time for which the run waits for its agent.
LIMITS_QUEUE = "limits_queue"
#: Seconds. A longer timeout would exceed the range of dates.
_LONGEST_TIMEOUT = 2**31
#: Status reason of a deployment whose agent has to stop the run.
CANCELLING = "Cancelling"
#: Value of a result: duration of the run in seconds.
_DURATION = "deploy_run_seconds"
#: Seconds: a year. Longer durations are ignored.
_LONGEST_DURATION = 365 * 24 * 3600


@dataclass(frozen=True, slots=True)
class Report:
    """The result of a run, as the agent of a server sent it. ``config_id`` is that of the derived config."""

    server_id: str
    config_id: str
    values: Mapping[str, Any]


def apply(tx: Tx, env: DeploymentEnv, reports: Sequence[Report], log_bytes: int) -> list[str | EntityNotFound | None]:
    """
    Apply reports. Return each one's status, or EntityNotFound if its server has no such run. At most ``log_bytes`` of
    each stream are kept. Raises any other error of a report; then roll back.
    """
    tx.is_signal = True
    run_owners = deployments.find_owners(tx, [(report.server_id, report.config_id) for report in reports])
    _lock(tx, list(run_owners.values()))
    results: list[str | EntityNotFound | None] = []
    for report in reports:
        owner = run_owners.get((report.server_id, report.config_id))
        tx.secrets = tx.new_secrets()
        # An agent may have to compare the effect of a run from its end on: then the document tells it to.
        tx.reporter = report.server_id if owner is not None and not owner.is_checked else None
        deployment = deployments.find(tx, owner.id) if owner else None
        if deployment is None:
            results.append(EntityNotFound.of("Run", report.config_id))
        elif deployment.config_id != report.config_id:
            runs.log_rejection(tx, deployment.id, report.config_id, runs.SUPERSEDED)
            results.append(deployment.status)
        else:
            changed = apply_signal(tx, env.work, deployment, report.values, log_bytes)
            results.append(tell_end(tx, env, deployment, changed).status)
    return results


def _lock(tx: Tx, run_owners: Sequence[RunOwner]) -> None:
    """Lock stacks, triggers and deployments, in this order, and read what the reports need."""
    for root_id in sorted({owner.root_id for owner in run_owners if owner.root_id is not None}):
        stacks.lock(tx, root_id)
    triggered = [owner for owner in run_owners if owner.trigger_id is not None]
    if triggered:
        triggers.share_locks(tx, {str(owner.trigger_id) for owner in triggered})
    deployments.prime_with_configs(tx, [owner.id for owner in run_owners])
    if triggered:
        targets.prime(tx, [owner.id for owner in triggered])


def signal(tx: Tx, env: DeploymentEnv, deployment: Deployment, values: Mapping[str, Any], log_bytes: int) -> Deployment:
    """Apply a signal to a locked deployment and tell its owner. Late and repeated signals change nothing."""
    if RUN in values:
        values = {name: value for name, value in values.items() if name != RUN}
    return tell_end(tx, env, deployment, apply_signal(tx, env.work, deployment, values, log_bytes))


def finish_run(
    tx: Tx, work: Work, ended: Deployment, write: Callable[[Tx, Deployment], None] = deployments.save_progress
) -> Deployment:
    """
    Store a deployment whose run has ended, and return it. Every run that does not end at its start ends here. A later
    report does not change the time of the end. ``write``: as in ``save``.
    """
    cancel_deadline(tx, work, ended.config_id)
    done = log_storage.end_output(tx, ended)
    if ended.is_of_client:
        tx.notify(project_topic(ended.project_id, "deployments"))
    return save(tx, replace(done, state=RunState.DONE, ended_at=ended.ended_at or tx.now), write)


def apply_signal(tx: Tx, work: Work, deployment: Deployment, values: Mapping[str, Any], log_bytes: int) -> Deployment:
    """
    Apply the values of a signal, maybe only progress, and ``log_bytes`` of each stream. Return the deployment,
    unchanged if it has ended, unless its agent reports that it has stopped the run.
    """
    is_only_progress = is_progress(values)
    is_over = deployment.status != Status.IN_PROGRESS
    if is_over and (is_only_progress or not deployment.cancelling):
        reason = f"the run has ended: {deployment.status}"
        runs.log_rejection(tx, deployment.id, deployment.config_id, reason)
        return deployment
    if is_only_progress:
        return runs.read_progress(tx, deployment, values)
    outputs = configs.outputs(tx, deployment.config_id)
    reported = log_storage.store_report(tx, deployment, values, log_bytes)
    if is_over:
        return record_stopped(tx, reported, values)
    if CHANGES in values:
        # Redacted before texts are cut: the first half of a secret would no longer be found.
        values = {**values, CHANGES: tx.secrets.redact(values[CHANGES])}
    resolved = resolve_signal(reported, outputs, values)
    ended = replace(
        resolved,
        cancelling=False,
        updated_at=tx.now,
        started_at=resolved.started_at or _began(tx, resolved, values.get(_DURATION)),
    )
    return finish_run(tx, work, ended)


def _began(tx: Tx, deployment: Deployment, seconds: object) -> datetime | None:
    """Compute the start of a run from its reported duration: an agent sends no progress of a very short run."""
    if isinstance(seconds, bool) or not isinstance(seconds, int | float) or not 0 <= seconds < _LONGEST_DURATION:
        return None
    # The agent's clock may be wrong: a run never starts before its request.
    return max(tx.now - timedelta(seconds=seconds), deployment.queued_at or deployment.created_at)


def fail(tx: Tx, work: Work, deployment: Deployment, reason: str) -> Deployment:
    """Fail the current run without further reports. The run leaves the server's document."""
    if deployment.status != Status.IN_PROGRESS:
        return deployment
    return finish_run(tx, work, replace(deployment, status=Status.FAILED, status_reason=reason, updated_at=tx.now))


def cancel(tx: Tx, work: Work, deployment: Deployment, reason: str) -> Deployment:
    """
    Cancel the current run; return the deployment. It is IN_PROGRESS until Stoker's own agent, if it may have started
    the run, reports its end. Any other run fails at once, and the reason says whether it may continue.
    """
    if deployment.status != Status.IN_PROGRESS or deployment.cancelling:
        return deployment
    if not _can_be_stopped(tx, deployment):
        outcome = "; its agent cannot be reached, so a run that it has begun may continue"
        return _stop(tx, work, deployment, f"{reason}{outcome if deployment.sent_at else ' before it was delivered'}")
    changed = replace(deployment, cancelling=True, status_reason=CANCELLING, updated_at=tx.now)
    return save(tx, replace(changed, state=RunState.CANCELLING))


def force_fail(tx: Tx, work: Work, deployment: Deployment, reason: str) -> Deployment:
    """Fail the current run immediately, without waiting for its agent. The agent is instructed to stop the run."""
    if deployment.status != Status.IN_PROGRESS:
        return deployment
    return _stop(tx, work, deployment, reason, cancelling=_can_be_stopped(tx, deployment))


def _can_be_stopped(tx: Tx, deployment: Deployment) -> bool:
    """Return whether Stoker's own agent may have begun the run, so that it has to stop it."""
    is_reachable = deployment.sent_at is None or deployment.channel == OWN_CHANNEL
    return is_reachable and deployments.may_have_begun(tx, deployment.id)


def record_stopped(tx: Tx, deployment: Deployment, values: Mapping[str, Any]) -> Deployment:
    """Record the result that the agent reports of a cancelled run. The notice to stop leaves the server's document."""
    outputs = {name: values[name] for name in ALWAYS if name in values}
    return save(tx, replace(deployment, cancelling=False, output_values=outputs, status_code=read_code(values)))


def save(
    tx: Tx, changed: Deployment, write: Callable[[Tx, Deployment], None] = deployments.save_progress
) -> Deployment:
    """Store a deployment and return it. ``write``: what writes more than progress and end of its run."""
    write(tx, changed)
    tx.bump_document(changed.server_id)
    tx.notify(deployment_topic(changed.id))
    return changed


def _stop(tx: Tx, work: Work, deployment: Deployment, reason: str, *, cancelling: bool = False) -> Deployment:
    return fail(tx, work, replace(deployment, held_by=CANCELLED, cancelling=cancelling), reason)


def tell_end(tx: Tx, env: DeploymentEnv, before: Deployment, after: Deployment) -> Deployment:
    """Tell the owner if the run has ended, and remove a deployment that the run has undone. Return the deployment."""
    if after.has_ended and not before.has_ended:
        tx.wake(after.owner, RunEnded(after, before.cancelling))
        if after.removing and after.status == Status.COMPLETE:
            withdraw(tx, env, after)
    return after


def withdraw(tx: Tx, env: DeploymentEnv, deployment: Deployment) -> None:
    """Delete a deployment with its runs, output, derived config, and its own object or queue for results."""
    cancel_deadline(tx, env.work, deployment.config_id)
    if deployment.resource_id is None:
        close_transport(tx, env, deployment)
    concerns_agent = _concerns_agent(tx, deployment)
    deployments.delete(tx, deployment.id)
    release_config(tx, deployment)
    tx.bump_or_drop_document(deployment.server_id, wakes=concerns_agent)
    tx.notify(deployment_topic(deployment.id))


def _concerns_agent(tx: Tx, deployment: Deployment) -> bool:
    """Return whether the document of Stoker's own agent may contain the deployment: its run, or its check."""
    is_over = deployment.has_ended and not deployment.cancelling and deployment.signal_transport != "NO_SIGNAL"
    return not is_over or checks.find(tx, deployment.id) is not None


def release_config(tx: Tx, deployment: Deployment) -> None:
    """Delete the derived config that a deployment leaves, or record that the server may have run a client's."""
    if deployment.is_of_client:
        deployments.record_past_config(tx, deployment.server_id, deployment.config_id)
    configs.delete_owned(tx, deployment.config_id)


def close_transport(tx: Tx, env: DeploymentEnv, deployment: Deployment) -> None:
    """Close the object or queue for the result of the current run of a deployment without a resource."""
    transport = env.transports.signal_transports.get(deployment.signal_transport or "")
    if needs_provisioning(transport):
        target = client_target(deployment.id, deployment.project_id, run=deployment.run_number)
        transport.close(tx, env.platform, target)


def expire(tx: Tx, env: DeploymentEnv, args: Mapping[str, Any]) -> None:
    """Job: fail the run ``config_id`` of ``deployment_id`` for the ``reason``, by default its deadline."""
    deployment = owners.find_locked(tx, args["deployment_id"])
    if deployment is None or deployment.config_id != args["config_id"] or deployment.has_ended:
        return
    reason = args.get("reason")
    if reason is not None or not postpone_deadline(tx, env.work, deployment, args):
        reason = reason or f"Timed out: {deployment.status_reason}"
        tell_end(tx, env, deployment, fail(tx, env.work, deployment, reason))


def seconds_of(inputs: Iterable[Mapping[str, Any]]) -> float | None:
    """
    Return the timeout of a run with these inputs in seconds, or None. Stoker appends its own inputs to the author's, so
    the last entry counts. A value that is no positive number of seconds is ignored.
    """
    values: list[Any] = [entry.get("value") for entry in inputs if entry["name"] == TIMEOUT]
    return read_seconds(values[-1]) if values else None


def read_seconds(value: Any) -> float | None:
    """Return a limit in seconds, a number or its text; None for any other value."""
    try:
        seconds = float("nan" if isinstance(value, bool) else value)
    except (TypeError, ValueError, OverflowError):
        return None
    return seconds if 0 < seconds < _LONGEST_TIMEOUT else None


def limit_of(tx: Tx, deployment: Deployment) -> float | None:
    """Return the timeout of the deployment's current run in seconds, or None."""
    config = configs.find(tx, deployment.config_id)
    return seconds_of(config.inputs) if config else None


def set_deadline(
    tx: Tx, work: Work, deployment_id: str, config_id: str, seconds: float, *, limits_queue: bool = False
) -> None:
    """Set the deadline of a run to ``seconds`` from now. ``limits_queue``: they include the wait for the agent."""
    args = {"deployment_id": deployment_id, "config_id": config_id, LIMITS_QUEUE: limits_queue}
    work.defer(tx, DEADLINE, config_id, args, at=tx.now + timedelta(seconds=seconds) + GRACE)


def postpone_deadline(tx: Tx, work: Work, deployment: Deployment, args: Mapping[str, Any]) -> bool:
    """
    Postpone the deadline (``args``: the job's) of a run that its agent has not started, or later than at the request.
    Returns False if the time of the run has passed.
    """
    server = servers.find(tx, deployment.server_id)
    reports_start = server is not None and server.has_channel and deployment.signal_transport == _REPORTS_START
    seconds = limit_of(tx, deployment)
    if seconds is None or args.get(LIMITS_QUEUE) or not reports_start:
        return False
    due = (deployment.started_at or tx.now) + timedelta(seconds=seconds) + GRACE
    if due <= tx.now:
        return False
    work.defer(tx, DEADLINE, deployment.config_id, args, at=due)
    return True


def cancel_deadline(tx: Tx, work: Work, config_id: str) -> None:
    """Cancel the deadline of a run, because it has ended or its result is no longer awaited."""
    if not configs.is_known_without(tx, config_id, TIMEOUT):
        work.cancel(tx, DEADLINE, config_id)
