"""The end of a run that nobody reports on in time."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping
from datetime import timedelta
from typing import Any

from stoker.deployments.derive import TIMEOUT
from stoker.model.deployment import Deployment
from stoker.store.tx import Tx
from stoker.work import Work

#: Kind of the job that ends a run whose time is over.
DEADLINE = "deployment.deadline"
#: The agent itself ends the hook in time; the server gives up only when no word of that comes.
GRACE = timedelta(seconds=15)
#: Seconds: beyond, no date may come out.
_LONGEST = 2**31


def seconds_of(inputs: Iterable[Mapping[str, Any]]) -> float | None:
    """
    How long a run may take that is derived with these; None: as long as it likes. Anybody may have an input of that
    name: ours is the last, and what is no number of seconds says nothing.
    """
    said: list[Any] = [each.get("value") for each in inputs if each["name"] == TIMEOUT]
    if not said or isinstance(said[-1], bool):
        return None
    try:
        seconds = float(said[-1])
    except (TypeError, ValueError, OverflowError):
        return None
    return seconds if math.isfinite(seconds) and 0 < seconds < _LONGEST else None


def expect(tx: Tx, work: Work, deployment: Deployment, seconds: float) -> None:
    """Its current run may take so long; one that waits for its server's window has its time from then on."""
    if deployment.withheld is None:
        expect_run(tx, work, deployment.id, deployment.config_id, seconds)


def expect_run(tx: Tx, work: Work, deployment_id: str, config_id: str, seconds: float) -> None:
    """That run may take so long from now on."""
    args = {"deployment_id": deployment_id, "config_id": config_id}
    work.defer(tx, DEADLINE, config_id, args, at=tx.now + timedelta(seconds=seconds) + GRACE)


def call_off(tx: Tx, work: Work, deployment: Deployment) -> None:
    """Its current run has ended, or nobody waits for it any more."""
    work.cancel(tx, DEADLINE, deployment.config_id)
