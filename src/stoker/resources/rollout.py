"""
The state of a group's roll-out, stored in the resource's data between transactions, and the members for each stage.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from enum import StrEnum
from typing import Any

from stoker.model.stack import Resource
from stoker.model.status import Status
from stoker.resources.update_policy import UpdatePolicy

#: Definitions by member name, as in a template's ``resources``.
Members = Mapping[str, Mapping[str, Any]]

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


@dataclass(frozen=True, slots=True, kw_only=True)
class Rollout:
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
        if not isinstance(stored, Mapping):
            return None
        batches = {
            "now": tuple(stored["now"]),
            "left": tuple(map(tuple, stored["left"])),
            "reason": tuple(stored["reason"]),
        }
        return cls(**{**stored, **batches, "stage": Stage(stored["stage"])})

    def into(self, data: Mapping[str, Any]) -> dict[str, Any]:
        """Return ``data`` with the roll-out in it."""
        stored = {name: getattr(self, name) for name in self.__slots__}
        return {**data, _KEY: stored, "round": self.round, "failed": self.failed}

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


def clash(names: Mapping[str, Any]) -> str | None:
    """Return a member whose name another member's health check needs; None if there is none."""
    return next((name for name in names if is_of_health(name) and name.removesuffix(_HEALTH) in names), None)


@dataclass(frozen=True, slots=True)
class MembersPlan:
    """The members that the nested stack shall have, and the subset that the operation must not change."""

    members: Members
    frozen_members: frozenset[str] = frozenset()

    @property
    def template(self) -> dict[str, Any]:
        """The template of the nested stack."""
        return {"heat_template_version": _VERSION, "resources": dict(self.members)}


def plan_members(
    rollout: Rollout, policy: UpdatePolicy, members: Members, checks: Members, present: Members
) -> MembersPlan:
    """
    Return the members that the nested stack needs for the current stage.

    ``members``: all members of the group; ``checks``: the health check members of the batch; ``present``: the current
    members of the nested stack.
    """
    if rollout.stage is Stage.BACK:
        return _back(rollout, present)
    if rollout.stage is Stage.HEALTH:
        return MembersPlan({**present, **checks}, frozenset(present) - frozenset(checks))
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
    return MembersPlan({**planned, **kept}, later | frozenset(rollout.failed) | frozenset(kept))


def _back(rollout: Rollout, present: Members) -> MembersPlan:
    restored = dict(present)
    for name in rollout.now:
        before = rollout.before.get(name)
        if before is not None:
            restored[name] = before
        else:
            restored.pop(name, None)
        if before is None or name not in rollout.failed:
            restored.pop(health_of(name), None)  # the result applies to a definition that no longer exists
    return MembersPlan(restored, frozenset(restored) - frozenset(rollout.now))


def broken(resources: Mapping[str, Resource], names: tuple[str, ...]) -> dict[str, str]:
    """Return the failed resources among ``names``, with their reasons."""
    present = {name: resources[name] for name in names if name in resources}
    return {name: resource.reason for name, resource in present.items() if resource.status is Status.FAILED}
