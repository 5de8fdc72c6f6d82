"""What advances when a transaction ends: owners of runs and of other things that they wait for, and the causes."""

from __future__ import annotations

from dataclasses import dataclass
from typing import NamedTuple

from stoker.model.check import Check
from stoker.model.deployment import Deployment


class Owner(NamedTuple):
    """A resource or a trigger, by ``Owner.resource`` or ``Owner.trigger``. Owners are woken in their order."""

    kind: str
    id: str

    @staticmethod
    def resource(id: str) -> Owner:
        """Return the resource with this id."""
        return Owner("resource", id)

    @staticmethod
    def trigger(id: str) -> Owner:
        """Return the trigger with this id."""
        return Owner("trigger", id)

    @staticmethod
    def of(deployment: Deployment) -> Owner | None:
        """Return the owner of a deployment; None for a client's."""
        if deployment.resource_id is not None:
            return Owner.resource(deployment.resource_id)
        return Owner.trigger(deployment.trigger_id) if deployment.trigger_id is not None else None


@dataclass(frozen=True, slots=True)
class Settled:
    """What the owner waits for exists. ``failure``: why it cannot exist."""

    failure: str | None = None


@dataclass(frozen=True, slots=True)
class RunEnded:
    """A run has ended. ``was_cancelling``: its agent was instructed to stop it before."""

    deployment: Deployment
    was_cancelling: bool = False


@dataclass(frozen=True, slots=True)
class RunRestarted:
    """A deployment that had ended runs again. The run may have ended already."""

    deployment: Deployment


@dataclass(frozen=True, slots=True)
class Removed:
    """A client has removed a deployment, which is as it was before."""

    deployment: Deployment


@dataclass(frozen=True, slots=True)
class DriftChanged:
    """Drift of a deployment has begun (``check.drifted_at`` is set) or ended."""

    check: Check


Cause = Settled | RunEnded | RunRestarted | Removed | DriftChanged
