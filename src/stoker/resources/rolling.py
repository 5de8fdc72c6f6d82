"""How far a group has come: kept with the resource between transactions, and the stack of members that it asks for."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from enum import StrEnum
from typing import Any

from stoker.model.stack import Resource
from stoker.model.status import Status
from stoker.resources.batches import Policy

#: A member's name to its definition, as in a template.
Members = Mapping[str, Mapping[str, Any]]

_VERSION = "2021-04-16"
_HEALTH = ".health"
#: Where a group's data has this.
_KEY = "rolling"


class Stage(StrEnum):
    """What is done with the batch whose turn it is."""

    MEMBERS = "members"
    HEALTH = "health"
    #: Nothing, until a time.
    PAUSE = "pause"
    #: It is brought back to what it was.
    BACK = "back"
    DONE = "done"


@dataclass(frozen=True, slots=True, kw_only=True)
class Rolling:
    """One action on a group."""

    #: Which of the two policies it goes by.
    policy: str
    #: Counts the group's actions: what checks health is run once in each.
    round: int
    stage: Stage
    now: tuple[str, ...]
    left: tuple[tuple[str, ...], ...] = ()
    #: Members that failed so far, and why.
    failed: Mapping[str, str] = field(default_factory=dict)
    #: The batch's definitions before its turn, where it may have to go back to them; None: there was none.
    before: Mapping[str, Mapping[str, Any] | None] = field(default_factory=dict)
    #: Why it goes back: text and kind of an InnerFailure.
    reason: tuple[str, str] = ("", "")

    @classmethod
    def of(cls, resource: Resource) -> Rolling | None:
        said = resource.data.get(_KEY)
        if not isinstance(said, Mapping):
            return None
        batches = {"now": tuple(said["now"]), "left": tuple(map(tuple, said["left"])), "reason": tuple(said["reason"])}
        return cls(**{**said, **batches, "stage": Stage(said["stage"])})

    def into(self, data: Mapping[str, Any]) -> dict[str, Any]:
        said = {name: getattr(self, name) for name in self.__slots__}
        return {**data, _KEY: said, "round": self.round, "failed": self.failed}

    @property
    def later(self) -> frozenset[str]:
        return frozenset(name for batch in self.left for name in batch)

    @property
    def unproven(self) -> tuple[str, ...]:
        """Those of the batch whose turn has had no end: nobody knows how they are."""
        return self.now if self.stage in (Stage.MEMBERS, Stage.HEALTH) else ()

    @property
    def sound(self) -> tuple[str, ...]:
        """Those of the batch that have not failed."""
        return tuple(name for name in self.now if name not in self.failed)


def next_batch(rolling: Rolling, policy: Policy, present: Members) -> Rolling:
    """The turn of those that are next; ``present`` as they are in the nested stack yet."""
    now, *left = rolling.left
    before = {name: present.get(name) for name in now} if policy.goes_back else {}
    return replace(rolling, stage=Stage.MEMBERS, now=now, left=tuple(left), before=before)


def without(data: Mapping[str, Any]) -> dict[str, Any]:
    """A group's data when its action is over."""
    return {name: value for name, value in data.items() if name != _KEY}


def health_of(name: str) -> str:
    """The member that says whether that one is well."""
    return name + _HEALTH


def is_of_health(name: str) -> bool:
    return name.endswith(_HEALTH)


def clash(names: Mapping[str, Any]) -> str | None:
    """A member with a name that is needed for the health of another."""
    return next((name for name in names if is_of_health(name) and name.removesuffix(_HEALTH) in names), None)


@dataclass(frozen=True, slots=True)
class Wanted:
    """The members that a nested stack is asked to have, and those of them that are left as they are."""

    members: Members
    held: frozenset[str] = frozenset()

    @property
    def template(self) -> dict[str, Any]:
        return {"heat_template_version": _VERSION, "resources": dict(self.members)}


def wanted(rolling: Rolling, policy: Policy, members: Members, checks: Members, present: Members) -> Wanted:
    """
    What the stage needs: of all ``members``, of what checks the health of the batch's, and of those that are
    ``present`` in the nested stack by now.
    """
    if rolling.stage is Stage.BACK:
        return _back(rolling, present)
    if rolling.stage is Stage.HEALTH:
        return Wanted({**present, **checks}, frozenset(present) - frozenset(checks))
    later = rolling.later
    said: dict[str, Mapping[str, Any]] = {}
    for name, each in members.items():
        if name not in later:
            said[name] = each
        elif name in present:
            said[name] = present[name]
    well = {health_of(name) for name in said} if policy.health_check else set()
    # Who is to go goes first, but where the batches may yet have to go back: then last.
    stays = well | (present.keys() - members.keys() if policy.goes_back and rolling.left else set())
    kept = {name: each for name, each in present.items() if name in stays and name not in said}
    return Wanted({**said, **kept}, later | frozenset(rolling.failed) | frozenset(kept))


def _back(rolling: Rolling, present: Members) -> Wanted:
    said = dict(present)
    for name in rolling.now:
        before = rolling.before.get(name)
        if before is not None:
            said[name] = before
        else:
            said.pop(name, None)
        if before is None or name not in rolling.failed:
            said.pop(health_of(name), None)  # what it found is no longer so
    return Wanted(said, frozenset(said) - frozenset(rolling.now))


def broken(resources: Mapping[str, Resource], names: tuple[str, ...]) -> dict[str, str]:
    """Which of them failed, and their reasons."""
    found = {name: resources[name] for name in names if name in resources}
    return {name: each.reason for name, each in found.items() if each.status is Status.FAILED}
