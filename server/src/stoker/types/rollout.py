"""
The roll-out of groups: their update policies (batch sizes, tolerated failures, health checks), the members of each
stage, and the state, which the resource's data stores between transactions. Pure functions.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from enum import StrEnum
from typing import Any

from msgspec import Struct, convert, field
from msgspec.structs import asdict, replace

from stoker.hot import UNKNOWN
from stoker.model.errors import StackValidationFailed
from stoker.model.stack import Resource, Status
from stoker.resources import properties as schemas
from stoker.resources.base import LONGEST_WAIT
from stoker.resources.properties import Property, PropertyError
from stoker.resources.roles import Members, NestedSpec

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
        raise StackValidationFailed(error.describe("update_policy")) from None


_VERSION = "2021-04-16"
_HEALTH = ".health"
#: Key of the group's data for the roll-out.
_KEY = "rolling"


class Stage(StrEnum):
    """What the roll-out currently does with its batch."""

    MEMBERS = "members"
    HEALTH = "health"
    #: Waiting until a time.
    PAUSE = "pause"
    #: Restoring the batch's previous definitions.
    BACK = "back"
    DONE = "done"


class Rollout(Struct, frozen=True, kw_only=True):
    """The state of one roll-out: one CREATE or UPDATE of a group."""

    #: Name of the policy that applies: ``batch_create`` or ``rolling_update``.
    policy: str
    #: Number of the roll-out within the group. The number is part of the health checks' metadata, so each roll-out runs
    #: them again.
    round: int
    stage: Stage
    now: tuple[str, ...]
    left: tuple[tuple[str, ...], ...] = ()
    #: Failed members and their reasons.
    failed: Mapping[str, str] = field(default_factory=dict)
    #: The batch's definitions before the change, for a roll-back; None for a member that did not exist.
    before: Mapping[str, Mapping[str, Any] | None] = field(default_factory=dict)
    #: The reason of the roll-back: text and kind of a NestedFailure.
    reason: tuple[str, str] = ("", "")

    @classmethod
    def of(cls, resource: Resource) -> Rollout | None:
        """Read the roll-out from the resource's data; None if there is none."""
        stored = resource.data.get(_KEY)
        return convert(stored, cls) if isinstance(stored, Mapping) else None

    def into(self, data: Mapping[str, Any]) -> dict[str, Any]:
        """Return ``data`` with the roll-out in it."""
        return {**data, _KEY: asdict(self), "round": self.round, "failed": self.failed}

    @property
    def later(self) -> frozenset[str]:
        """Members of the later batches."""
        return frozenset(name for batch in self.left for name in batch)

    @property
    def unproven(self) -> tuple[str, ...]:
        """Members of the current batch if its stage has not ended, so that their state is not known."""
        return self.now if self.stage in (Stage.MEMBERS, Stage.HEALTH) else ()

    @property
    def sound(self) -> tuple[str, ...]:
        """Members of the current batch that have not failed."""
        return tuple(name for name in self.now if name not in self.failed)


def next_batch(rollout: Rollout, policy: UpdatePolicy, present: Members) -> Rollout:
    """Return the state with the next batch as the current one. ``present``: the members of the nested stack now."""
    now, *left = rollout.left
    before = {name: present.get(name) for name in now} if policy.goes_back else {}
    return replace(rollout, stage=Stage.MEMBERS, now=now, left=tuple(left), before=before)


def without(data: Mapping[str, Any]) -> dict[str, Any]:
    """Return a group's data without the roll-out, which has ended."""
    return {name: value for name, value in data.items() if name != _KEY}


def health_of(name: str) -> str:
    """Return the name of the member that checks this member's health."""
    return name + _HEALTH


def is_of_health(name: str) -> bool:
    """Return whether the name is that of a health check member."""
    return name.endswith(_HEALTH)


def describe_clash(names: Collection[str]) -> str | None:
    """Return the error of a member whose name another member's health check needs; None if there is none."""
    taken = next((name for name in names if is_of_health(name) and name.removesuffix(_HEALTH) in names), None)
    if taken is None:
        return None
    return f"the health of a server would have the name of the server {taken!r}: name that one otherwise"


def template_of(members: Members) -> dict[str, Any]:
    """Return the template of a nested stack with these members."""
    return {"heat_template_version": _VERSION, "resources": dict(members)}


def plan_members(
    rollout: Rollout, policy: UpdatePolicy, members: Members, checks: Members, present: Members
) -> NestedSpec:
    """
    Return the nested stack for the current stage, with the members that the operation must not change.

    ``members``: all members of the group; ``checks``: the health check members of the batch; ``present``: the current
    members of the nested stack.
    """
    is_lenient = policy.tolerated(len(members)) > 0
    if rollout.stage is Stage.BACK:
        restored = _restore(rollout, present)
        return NestedSpec(template_of(restored), frozen_members=restored.keys() - set(rollout.now), lenient=True)
    if rollout.stage is Stage.HEALTH:
        frozen = present.keys() - checks.keys()
        return NestedSpec(template_of({**present, **checks}), frozen_members=frozen, lenient=is_lenient)
    later = rollout.later
    planned: dict[str, Mapping[str, Any]] = {}
    for name, definition in members.items():
        if name not in later:
            planned[name] = definition
        elif name in present:
            planned[name] = present[name]
    well = {health_of(name) for name in planned} if policy.health_check else set()
    # Old members are removed first. If a roll-back may restore them, the last batch removes them.
    stays = well | (present.keys() - members.keys() if policy.goes_back and rollout.left else set())
    kept = {name: definition for name, definition in present.items() if name in stays and name not in planned}
    frozen = {*later, *rollout.failed, *kept}
    return NestedSpec(template_of({**planned, **kept}), frozen_members=frozen, lenient=is_lenient)


def _restore(rollout: Rollout, present: Members) -> Members:
    restored = dict(present)
    for name in rollout.now:
        before = rollout.before.get(name)
        if before is not None:
            restored[name] = before
        else:
            restored.pop(name, None)
        if before is None or name not in rollout.failed:
            restored.pop(health_of(name), None)  # the result applies to a definition that no longer exists
    return restored


def broken(resources: Mapping[str, Resource], names: tuple[str, ...]) -> dict[str, str]:
    """Return the failed resources among ``names``, with their reasons."""
    present = {name: resources[name] for name in names if name in resources}
    return {name: resource.reason for name, resource in present.items() if resource.status is Status.FAILED}
