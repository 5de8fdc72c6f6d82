"""History of runs: their start, progress, heartbeats and end."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import replace
from datetime import datetime, timedelta
from typing import Any

from stoker.deployments.masker import release
from stoker.deployments.signals import REASON, STATUS, read_changes
from stoker.model.deployment import OWN_CHANNEL, Deployment, Progress, Run, RunState
from stoker.model.errors import EntityNotFound
from stoker.model.status import Status
from stoker.store import configs, deployments, logs, rows, runs
from stoker.store.notifier import deployment_topic
from stoker.store.tx import Tx

#: Value of a result: duration of the run in seconds.
DURATION = "deploy_run_seconds"
#: Seconds: a year. Longer durations are ignored.
_LONGEST = 365 * 24 * 3600
#: Values that are stored in the log, or as columns of the run.
_NOT_KEPT = ("deploy_stdout", "deploy_stderr", DURATION)
#: Maximum length of a progress message in characters.
_MESSAGE = 1000

#: Input of a derived config: tells hooks that signals may report progress.
STATUS_AWARE = "deploy_status_aware"


def record_end(tx: Tx, deployment: Deployment, values: Mapping[str, Any]) -> None:
    """Record that the current run has ended. ``values``: the reported values, empty if there is no report."""
    outputs = deployment.output_values
    changed, changes = read_changes(values)
    code = outputs.get("deploy_status_code")
    unfinished = runs.end(
        tx,
        deployment.id,
        deployment.config_id,
        status=deployment.status or "",
        code=None if code is None else str(code).replace("\0", "")[:64],
        reason=deployment.status_reason,
        outputs=rows.dump({name: value for name, value in outputs.items() if name not in _NOT_KEPT}),
        began=_began(tx, values.get(DURATION)),
        changed=changed,
        changes=rows.dump(changes),
    )
    for stream, (size, held_bytes) in unfinished.items():
        of = (tx, deployment.id, deployment.config_id)
        logs.append(*of, stream=stream, offset=size - len(held_bytes), data=release(held_bytes), at=tx.now)
        logs.grow(*of, stream, size)


def _began(tx: Tx, seconds: object) -> datetime | None:
    """Compute the start of a run from its reported duration: an agent sends no progress of a very short run."""
    if isinstance(seconds, bool) or not isinstance(seconds, int | float) or not 0 <= seconds < _LONGEST:
        return None
    return tx.now - timedelta(seconds=seconds)


def is_own(run: Run) -> bool:
    """Return whether Stoker's own agent received the run over its own channel."""
    return run.channel == OWN_CHANNEL


def progress(tx: Tx, *, server_id: str, config_id: str, percent: int | None, message: str | None) -> None:
    """
    Record the progress that an agent reports. Progress of a run that has ended is ignored.

    ``percent`` is 0 to 100. Raises EntityNotFound if the server has no such run.
    """
    deployment = of_server(tx, server_id, config_id)
    if deployment.status == Status.IN_PROGRESS:
        report = Progress(RunState.RUNNING, percent, message and message.replace("\0", "")[:_MESSAGE], tx.now)
        record_progress(tx, deployment, report, OWN_CHANNEL)


def heartbeat(tx: Tx, *, server_id: str, config_id: str) -> None:
    """Record that a run continues without other progress. Raises EntityNotFound if the server has no such run."""
    deployment = deployments.of_run(tx, server_id, config_id)
    if deployment is None:
        raise EntityNotFound.of("Run", config_id)
    run = runs.find(tx, deployment.id, config_id)
    runs.heartbeat(tx, deployment.id, config_id, OWN_CHANNEL)
    if run is None or run.started_at is None or run.unresponsive_for(tx.now):
        tx.notify(deployment_topic(deployment.id))


def is_progress(values: Mapping[str, Any]) -> bool:
    """Return whether a signal reports only progress, not an end."""
    return values.get(STATUS) == Status.IN_PROGRESS


def progress_of(tx: Tx, values: Mapping[str, Any]) -> Progress:
    """Return the progress in the values of a signal. Any hook may write them, so unreadable values are ignored."""
    number = str(values.get("deploy_percent", "")).strip().removesuffix("%")
    percent = int(number) if re.fullmatch("[0-9]{1,3}", number) and int(number) <= 100 else None
    words = values.get("deploy_message") or values.get(REASON)
    message = None if words is None else str(words).replace("\0", "")[:_MESSAGE]
    return Progress(RunState.RUNNING, percent, message, tx.now)


def record_progress(tx: Tx, deployment: Deployment, progress: Progress, channel: str | None = None) -> Deployment:
    """
    Record progress of a run. Return the changed deployment.

    ``channel``: the transport by which the agent received the run, if the caller knows it.
    """
    find_run(tx, deployment)
    # adds the run's secrets to the transaction, so that the message is redacted
    configs.secret_inputs(tx, deployment.config_id, deployment.project_id)
    if deployment.cancelling:  # the pending cancellation remains visible
        progress = replace(progress, state=RunState.CANCELLING)
        changed = deployment
    else:
        changed = replace(deployment, status_reason=describe_progress(progress))
        deployments.save(tx, changed)
    runs.record_progress(tx, deployment.id, deployment.config_id, progress, channel)
    tx.notify(deployment_topic(deployment.id))
    return changed


def describe_progress(progress: Progress) -> str:
    """Return progress as a status reason, such as ``Running (40 %): copying files``."""
    word = progress.state.capitalize()
    percent = "" if progress.percent is None else f" ({progress.percent} %)"
    return f"{word}{percent}: {progress.message}" if progress.message else f"{word}{percent}"


def find_run(tx: Tx, deployment: Deployment) -> None:
    """Store the run if it is not recorded: a REST client may have changed the deployment's config."""
    runs.add(tx, deployment, deployment.input_values)


def of_server(tx: Tx, server_id: str, config_id: str) -> Deployment:
    """Return the locked deployment of a run. Raises EntityNotFound if the server has no such run."""
    unlocked = deployments.of_run(tx, server_id, config_id)
    deployment = deployments.find(tx, unlocked.id, for_update=True) if unlocked else None
    if deployment is None or deployment.config_id != config_id:
        raise EntityNotFound.of("Run", config_id)
    return deployment
