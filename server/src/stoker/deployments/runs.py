"""Reports of agents about runs: progress, waits and heartbeats, and what the values of a result mean."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from functools import partial
from typing import Any

import structlog
from msgspec.structs import replace

from stoker.model.deployment import OWN_CHANNEL, PREVIEW, Deployment, RunState
from stoker.model.errors import EntityNotFound
from stoker.model.stack import Status
from stoker.store import configs, deployments
from stoker.store.notifier import deployment_topic
from stoker.store.tx import Tx

#: Maximum length of a progress message in characters.
_MESSAGE = 1000
#: Value of a result: id of the derived config that was run.
RUN = "deploy_config_id"
CODE = "deploy_status_code"
STREAMS = ("deploy_stdout", "deploy_stderr")
ALWAYS = (*STREAMS, CODE)
#: Stoker's own: the agent's reason for a missing regular result (interrupted, timed out, no hook).
REASON = "deploy_status_reason"
#: IN_PROGRESS, COMPLETE or FAILED, from a hook that knows ``deploy_status_aware``. It overrides all other values.
STATUS = "deploy_status"
#: Exit code of a hook that does not support the mode of the run (EOPNOTSUPP).
UNSUPPORTED = "95"
#: From hooks that know them: whether the run changed the server, and a list of what it changed.
_CHANGED, CHANGES = "deploy_changed", "deploy_changes"
#: Limits of the stored list of changes.
_MOST_CHANGES, _LONGEST_DIFF = 101, 4096
#: Limit of the number of changed items: it fits into a column of the database.
_MOST_ITEMS = 2**31 - 1
#: The last member of a list that a hook has cut: the number of changes that it omits.
_OMITTED = re.compile(r"(\d{1,9}) more")
_RECEIVED = "Outputs received"

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
    deployment = of_server(tx, server_id, config_id, for_update=False)
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


def of_server(tx: Tx, server_id: str, config_id: str, *, for_update: bool = True) -> Deployment:
    """Return the deployment of a run, locked ``for_update``. Raises EntityNotFound if the server has no such run."""
    deployment = deployments.of_run(tx, server_id, config_id, for_update=for_update)
    if deployment is None:
        raise EntityNotFound.of("Run", config_id)
    return deployment


def resolve_signal(
    deployment: Deployment, outputs: Iterable[Mapping[str, Any]], values: Mapping[str, Any]
) -> Deployment:
    """
    Return the deployment after a report of ``values``; unchanged if it has ended, because late and repeated signals are
    normal. Values that are neither declared ``outputs`` nor ``deploy_*`` are dropped. A non-zero exit code or an error
    output fails the deployment, unless the signal contains an explicit status. A pure function.
    """
    if deployment.status != Status.IN_PROGRESS:
        return deployment
    reported = [output for output in outputs if output["name"] in values]
    status, reason = _judge(deployment.mode, reported, values)
    changed, changes = read_changes(values)
    return replace(
        deployment,
        status=status,
        # PostgreSQL refuses NUL in a text column such as the reason; outputs are JSON, which may contain it.
        status_reason=reason.replace("\0", ""),
        output_values={name: values.get(name) for name in (*ALWAYS, *(output["name"] for output in reported))},
        changed=changed,
        changed_items=_count_changed(changes) if changed else 0,
        changes=tuple(changes),
        status_code=read_code(values),
    )


def _judge(mode: str | None, reported: Iterable[Mapping[str, Any]], values: Mapping[str, Any]) -> tuple[Status, str]:
    """Return how a run in this mode has ended, with the reason. ``reported``: the declared outputs in the values."""
    explicit, reason, code = values.get(STATUS), values.get(REASON), values.get(CODE)
    if mode == PREVIEW and str(code) == UNSUPPORTED:
        status = Status.FAILED if explicit == Status.FAILED else Status.COMPLETE
        return status, f"Cannot preview: {reason or 'the hook cannot show what it would change'}"
    if explicit == Status.COMPLETE:
        return Status.COMPLETE, str(reason or _RECEIVED)
    problems = [str(reason)] if reason else []
    if code and str(code) != "0":
        problems.append(f"deploy_status_code : Deployment exited with non-zero status code: {code}")
    for output in reported:
        value = values[output["name"]]
        # Heat fails if the key is present. Here an empty error output is not an error.
        if output.get("error_output") and value not in (None, ""):
            problems.append(f"{output['name']} : {value}")
    if problems or explicit == Status.FAILED:
        return Status.FAILED, ", ".join(problems) or "The agent says that it failed"
    return Status.COMPLETE, _RECEIVED


def is_progress(values: Mapping[str, Any]) -> bool:
    """Return whether a signal reports only progress, not an end."""
    return values.get(STATUS) == Status.IN_PROGRESS


def read_changes(values: Mapping[str, Any]) -> tuple[bool | None, list[dict[str, str]]]:
    """Return whether the run changed the server, if known, and maps with ``item``, ``outcome`` and ``diff``."""
    changed, reported = values.get(_CHANGED), values.get(CHANGES)
    items = [item for item in reported if isinstance(item, dict)] if isinstance(reported, list) else []
    changes = [
        {name: item[name][:_LONGEST_DIFF] for name in ("item", "outcome", "diff") if isinstance(item.get(name), str)}
        for item in items[:_MOST_CHANGES]
    ]
    return (changed if isinstance(changed, bool) else None), changes


def read_code(values: Mapping[str, Any]) -> str | None:
    """Return the exit code of a run in its values, or None."""
    code = values.get(CODE)
    return None if code is None else str(code).replace("\0", "")[:64]


def _count_changed(changes: Sequence[Mapping[str, str]]) -> int:
    """Return the number of changed items, including those that the hook has omitted from the list."""
    omitted = [_OMITTED.fullmatch(change.get("item", "")) for change in changes if change.get("outcome") == "omitted"]
    listed = sum(change.get("outcome") == "changed" for change in changes)
    return min(listed + sum(int(match[1]) for match in omitted if match), _MOST_ITEMS)
