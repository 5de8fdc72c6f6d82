"""Reports of agents during a run: progress, waits and heartbeats."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from functools import partial
from typing import Any

import structlog
from msgspec.structs import replace

from stoker.deployments.signals import REASON
from stoker.model.deployment import OWN_CHANNEL, Deployment, RunState
from stoker.model.errors import EntityNotFound
from stoker.model.status import Status
from stoker.store import configs, deployments
from stoker.store.notifier import deployment_topic
from stoker.store.tx import Tx

#: Maximum length of a progress message in characters.
_MESSAGE = 1000

_log = structlog.get_logger("stoker.deployments")
#: Why a signal changes nothing that names another run than the current one.
SUPERSEDED = "the run is not the current one of its deployment"
#: Input of a derived config: tells hooks that signals may report progress.
STATUS_AWARE = "deploy_status_aware"


def log_rejection(tx: Tx, deployment_id: str | None, run: str | None, reason: str) -> None:
    """Log a signal that changes nothing. ``run``: number or derived config of the run that the signal names."""
    tx.after_commit(partial(_log.info, "signal.rejected", deployment_id=deployment_id, run=run, reason=reason))


@contextmanager
def log_unknown(deployment_id: str | None, run: str | None) -> Iterator[None]:
    """Log a signal to a deployment or run that does not exist. ``run``: as the signal names it."""
    try:
        yield
    except EntityNotFound as error:
        _log.info("signal.rejected", deployment_id=deployment_id, run=run, reason=error.message)
        raise


def progress(tx: Tx, *, server_id: str, config_id: str, percent: int | None, message: str | None) -> None:
    """Record an agent's progress, ``percent`` from 0 to 100, of a run in progress. Raises EntityNotFound."""
    deployment = of_server(tx, server_id, config_id)
    if deployment.status == Status.IN_PROGRESS:
        _record_progress(tx, deployment, percent, message, OWN_CHANNEL)


def record_wait(tx: Tx, *, server_id: str, config_id: str, reason: str) -> None:
    """Record that an agent cannot start a run now, if the run is pending. Raises EntityNotFound."""
    deployment = of_server(tx, server_id, config_id)
    if deployment.status == Status.IN_PROGRESS and not deployment.cancelling:
        text = reason.replace("\0", "")[:_MESSAGE]
        deployments.save_progress(tx, replace(deployment, status_reason=f"Waiting: {text}"))
        tx.notify(deployment_topic(deployment.id))


def heartbeat(tx: Tx, *, server_id: str, config_id: str) -> None:
    """Record that a run continues without other progress. Raises EntityNotFound if the server has no such run."""
    deployment = deployments.of_run(tx, server_id, config_id)
    if deployment is None:
        raise EntityNotFound.of("Run", config_id)
    deployments.heartbeat(tx, deployment.id, config_id, OWN_CHANNEL)
    if deployment.started_at is None or deployment.run.unresponsive_for(tx.now):
        tx.notify(deployment_topic(deployment.id))


def read_progress(tx: Tx, deployment: Deployment, values: Mapping[str, Any]) -> Deployment:
    """Record the readable progress in the values of a signal, which any hook may write. Return the deployment."""
    number = str(values.get("deploy_percent", "")).strip().removesuffix("%")
    percent = int(number) if re.fullmatch("[0-9]{1,3}", number) and int(number) <= 100 else None
    words = values.get("deploy_message") or values.get(REASON)
    return _record_progress(tx, deployment, percent, None if words is None else str(words))


def _record_progress(
    tx: Tx, deployment: Deployment, percent: int | None, message: str | None, channel: str | None = None
) -> Deployment:
    """``channel``: the transport by which the agent received the run, if the caller knows it."""
    message = None if message is None else message.replace("\0", "")[:_MESSAGE]
    # adds the run's secrets to the transaction, so that the message is redacted
    configs.learn_secrets(tx, deployment.config_id)
    is_cancelling = deployment.cancelling  # the pending cancellation remains visible
    changed = replace(
        deployment,
        status_reason=deployment.status_reason if is_cancelling else describe_progress(percent, message),
        state=RunState.CANCELLING if is_cancelling else RunState.RUNNING,
        percent=percent,
        message=message,
        last_heartbeat_at=tx.now,
        started_at=deployment.started_at or tx.now,
        sent_at=deployment.sent_at or tx.now,
        channel=deployment.channel or channel,
    )
    deployments.save_progress(tx, changed)
    tx.notify(deployment_topic(deployment.id))
    return changed


def describe_progress(percent: int | None, message: str | None) -> str:
    """Return progress as a status reason, such as ``Running (40 %): copying files``."""
    share = "" if percent is None else f" ({percent} %)"
    return f"Running{share}: {message}" if message else f"Running{share}"


def of_server(tx: Tx, server_id: str, config_id: str) -> Deployment:
    """Return the locked deployment of a run. Raises EntityNotFound if the server has no such run."""
    deployment = deployments.of_run(tx, server_id, config_id, for_update=True)
    if deployment is None:
        raise EntityNotFound.of("Run", config_id)
    return deployment
