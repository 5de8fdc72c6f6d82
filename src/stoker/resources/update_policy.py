"""Update policies of groups: batch sizes, tolerated failures and health checks. Pure functions."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from stoker.hot import UNKNOWN
from stoker.model.errors import StackValidationFailed
from stoker.resources import properties as schemas
from stoker.resources.base import LONGEST_WAIT
from stoker.resources.properties import Property, PropertyError

#: Names of a group's policies: for its creation, and for every later change.
CREATING, CHANGING = "batch_create", "rolling_update"

BATCHES: Mapping[str, Property] = {
    "max_batch_size": Property(kind="integer", default=1, minimum=1),
    "pause_time": Property(kind="number", default=0, minimum=0, maximum=LONGEST_WAIT),
}
MIN_IN_SERVICE = Property(kind="integer", default=0, minimum=0)
#: Extensions by Stoker, for groups of deployments.
CAREFUL: Mapping[str, Property] = {
    **BATCHES,
    "canary": Property(kind="integer", default=0, minimum=0),
    "max_fail_percentage": Property(kind="number", default=0, minimum=0, maximum=100),
    "health_check": Property(kind="string"),
    "health_timeout": Property(kind="number", minimum=1, maximum=LONGEST_WAIT),
    "on_failure": Property(kind="string", default="FAIL", allowed=("FAIL", "ROLLBACK")),
}


@dataclass(frozen=True, slots=True, kw_only=True)
class UpdatePolicy:
    """One of a group's two policies. The default changes all members at once."""

    max_batch_size: int | None = None
    pause_time: float = 0
    min_in_service: int = 0
    #: Members in the first batch; 0: as many as in the other batches.
    canary: int = 0
    max_fail_percentage: float = 0
    #: Id of the config that checks a member's health; None: a completed change counts as healthy.
    health_check: str | None = None
    health_timeout: float | None = None
    on_failure: str = "FAIL"

    @property
    def goes_back(self) -> bool:
        """Whether a failed batch is rolled back."""
        return self.on_failure == "ROLLBACK"

    def tolerated(self, total: int) -> int:
        """Return how many of ``total`` members may fail."""
        return int(total * self.max_fail_percentage // 100)

    def batches(self, names: Sequence[str], total: int) -> list[list[str]]:
        """
        Return the batches of the members to change, ``names``; at least one batch, because an update may only remove
        members.

        After the canary, a batch leaves ``min_in_service`` of ``total`` members in service, but has at least one
        member.
        """
        if self.max_batch_size is None or not names:
            return [list(names)]
        size = min(self.max_batch_size, max(1, total - self.min_in_service))
        first = list(names[: self.canary])
        rest = [list(names[at : at + size]) for at in range(len(first), len(names), size)]
        return [first, *rest] if first else rest


def schema(creating: Mapping[str, Property], changing: Mapping[str, Property]) -> Mapping[str, Property]:
    """Return the schema of a group type's ``update_policy``."""
    return {CREATING: Property(kind="map", schema=creating), CHANGING: Property(kind="map", schema=changing)}


def check(wanted: Mapping[str, Property], values: Any) -> dict[str, UpdatePolicy | None]:
    """Return both policies by name. A policy that is UNKNOWN yet counts as absent. Raises PropertyError."""
    both = schemas.check(wanted, values)
    return {name: _policy(name, value) for name, value in both.items()}


def _policy(name: str, value: Any) -> UpdatePolicy | None:
    if value is None or value is UNKNOWN:
        return None
    settings = {key: setting for key, setting in value.items() if setting is not UNKNOWN}
    if settings.get("health_timeout") is not None and value.get("health_check") is None:
        raise PropertyError((name, "health_timeout"), "a health_check is needed that it is the timeout of")
    return UpdatePolicy(**settings)


def of_resource(wanted: Mapping[str, Property], update_policy: Any, name: str) -> UpdatePolicy:
    """Return the policy ``name`` of a resource. Raises StackValidationFailed with the path of the invalid value."""
    try:
        return check(wanted, update_policy or {})[name] or UpdatePolicy()
    except PropertyError as error:
        place = ".".join(("update_policy", *map(str, error.path)))
        raise StackValidationFailed(f"{place}: {error.problem}") from None
