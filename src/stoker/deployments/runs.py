"""What becomes of runs: from when they are recorded to how far their agents say they are."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from dataclasses import replace
from datetime import datetime, timedelta
from typing import Any

from stoker.deployments.derive import without_secrets
from stoker.deployments.settle import REASON, STATUS
from stoker.model.deployment import Deployment, Progress, Run, RunState
from stoker.model.errors import EntityNotFound
from stoker.model.status import Status
from stoker.store import deployments, rows, runs
from stoker.store.bell import deployment_topic
from stoker.store.tx import Tx

#: The transport of Stoker's own agents, on which a run can be stopped.
OWN_CHANNEL = "STOKER_PUSH"
#: In a result: seconds from the start of the run to its end.
DURATION = "deploy_run_seconds"
#: A year: no run is as long.
_LONGEST = 365 * 24 * 3600
#: What the log has, or the run itself.
_NOT_KEPT = ("deploy_stdout", "deploy_stderr", DURATION)
#: Characters of a message.
_MESSAGE = 1000

#: In a derived config: signals may say how far a run is.
STATUS_AWARE = "deploy_status_aware"


def record(tx: Tx, deployment: Deployment, asked_by: str | None, inputs: Iterable[Mapping[str, Any]] = ()) -> None:
    """A run begins. ``inputs``: those of its config, where the deployment itself has their secrets yet."""
    state = RunState.HELD if deployment.withheld else RunState.WAITING
    if deployment.status != Status.IN_PROGRESS:
        state = RunState.DONE
    values = without_secrets(deployment.input_values, inputs)
    runs.add(tx, deployment, state=state, asked_by=asked_by, inputs=rows.dump(values))


def ended(tx: Tx, deployment: Deployment, values: Mapping[str, Any]) -> None:
    """Its current run is over, and this is what came of it; ``values``: as they were reported, if they were."""
    said = deployment.output_values
    code = said.get("deploy_status_code")
    runs.end(
        tx,
        deployment.id,
        deployment.config_id,
        status=deployment.status or "",
        code=None if code is None else str(code).replace("\0", "")[:64],
        reason=deployment.status_reason,
        outputs=rows.dump({name: value for name, value in said.items() if name not in _NOT_KEPT}),
        began=_began(tx, values.get(DURATION)),
    )


def _began(tx: Tx, seconds: object) -> datetime | None:
    """Of one so short that its agent said nothing before its result: as long before that as it took."""
    if isinstance(seconds, bool) or not isinstance(seconds, int | float) or not 0 <= seconds < _LONGEST:
        return None
    return tx.now - timedelta(seconds=seconds)


def is_own(run: Run) -> bool:
    """Whether Stoker's own agent has it, by its own channel."""
    return run.channel == OWN_CHANNEL


def progress(tx: Tx, *, server_id: str, config_id: str, state: str, percent: int | None, message: str | None) -> None:
    """Raises EntityNotFound when this server has no such run. A run that has ended says nothing more."""
    deployment = of_server(tx, server_id, config_id)
    if deployment.status == Status.IN_PROGRESS:
        said = Progress(state[:64], percent, message and message.replace("\0", "")[:_MESSAGE], tx.now)
        heard(tx, deployment, said, OWN_CHANNEL)


def beat(tx: Tx, *, server_id: str, config_id: str) -> None:
    """Its agent says that it goes on, as it did. Raises EntityNotFound when this server has no such run."""
    deployment = deployments.of_run(tx, server_id, config_id)
    if deployment is None:
        raise EntityNotFound.of("Run", config_id)
    known = runs.find(tx, deployment.id, config_id)
    runs.beat(tx, deployment.id, config_id, OWN_CHANNEL)
    if known is None or known.started_at is None or known.silent_for(tx.now):
        tx.ring(deployment_topic(deployment.id))


def is_progress(values: Mapping[str, Any]) -> bool:
    """Whether a signal says only that its run goes on."""
    return values.get(STATUS) == Status.IN_PROGRESS


def progress_of(tx: Tx, values: Mapping[str, Any]) -> Progress:
    """What such a signal says. Hooks of anybody's write them, so that what cannot be read is not said."""
    number = str(values.get("deploy_percent", "")).strip().removesuffix("%")
    percent = int(number) if re.fullmatch("[0-9]{1,3}", number) and int(number) <= 100 else None
    words = values.get("deploy_message") or values.get(REASON)
    message = None if words is None else str(words).replace("\0", "")[:_MESSAGE]
    return Progress(RunState.RUNNING, percent, message, tx.now)


def heard(tx: Tx, deployment: Deployment, said: Progress, channel: str | None = None) -> Deployment:
    """It is under way, and its agent says so; ``channel``: what that agent must have it from, where one can tell."""
    known(tx, deployment)
    if deployment.cancelling:  # it has been told to stop, and that is what is to be seen
        said = replace(said, state=RunState.CANCELLING)
        changed = deployment
    else:
        changed = replace(deployment, status_reason=in_words(said))
        deployments.save(tx, changed)
    runs.say(tx, deployment.id, deployment.config_id, said, channel)
    tx.ring(deployment_topic(deployment.id))
    return changed


def in_words(said: Progress) -> str:
    word = said.state.capitalize()
    percent = "" if said.percent is None else f" ({said.percent} %)"
    return f"{word}{percent}: {said.message}" if said.message else f"{word}{percent}"


def known(tx: Tx, deployment: Deployment) -> None:
    """REST clients may have changed the config of a deployment: that is a run too."""
    record(tx, deployment, None)


def of_server(tx: Tx, server_id: str, config_id: str) -> Deployment:
    """The deployment that this is a run of, held. Raises EntityNotFound when this server has no such run."""
    known = deployments.of_run(tx, server_id, config_id)
    deployment = deployments.find(tx, known.id, hold=True) if known else None
    if deployment is None or deployment.config_id != config_id:
        raise EntityNotFound.of("Run", config_id)
    return deployment
