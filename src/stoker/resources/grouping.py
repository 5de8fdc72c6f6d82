"""
Groups: resources whose nested stack has members made alike, changed all at once or in batches.

A batch is an operation of the nested stack; what its end means for the group is decided when that stack says so. All
that has to be known for it is in the resource's data, see ``rolling``.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, replace
from datetime import timedelta
from typing import Any

from stoker.hot import literal
from stoker.model.errors import StackValidationFailed
from stoker.model.stack import Resource
from stoker.model.status import Action, Status
from stoker.resources import batches, nesting
from stoker.resources.base import Context, InnerFailure, Outcome, Properties, Replace, ResourceFailure, wake_at
from stoker.resources.batches import CHANGING, CREATING, Policy
from stoker.resources.properties import Property
from stoker.resources.rolling import (
    Members,
    Rolling,
    Stage,
    Wanted,
    broken,
    clash,
    health_of,
    next_batch,
    wanted,
    without,
)
from stoker.resources.services import Inner

_AT_ONCE = Policy()
#: Names in a sentence.
_FEW = 10


@dataclass(frozen=True, slots=True)
class Group:
    """``members``: those that properties and what the resource keeps for itself ask for."""

    members: Callable[[Resource, Properties], Members]
    #: The schema of the type's ``update_policy``.
    policies: Mapping[str, Property]

    def create(self, context: Context, resource: Resource, properties: Properties) -> Outcome:
        known = context.nested.status(context, resource.physical_id)
        if known is None or known.deleted:
            return self._begin(context, resource, properties, CREATING)
        # It failed, and is tried again in place.
        said = resource.definition.get("update_policy") or {}
        return self._begin(context, resource, properties, CHANGING if said.get(CHANGING) else CREATING)

    def update(self, context: Context, resource: Resource, properties: Properties) -> Outcome:
        known = context.nested.status(context, resource.physical_id)
        if known is None or known.deleted:
            raise Replace(resource.name)
        return self._begin(context, resource, properties, CHANGING)

    def check(self, context: Context, resource: Resource) -> Outcome:
        """Also asked when a pause is over."""
        rolling = Rolling.of(resource)
        if rolling is None or resource.action not in (Action.CREATE, Action.UPDATE):
            return nesting.check(context, resource)
        return self._go_on(context, resource, rolling)

    def adopt(self, context: Context, resource: Resource, properties: Properties) -> Outcome:
        members = self._members(replace(resource, properties=properties))
        adopted = resource.data.get("adopt") or {}
        id = context.nested.create(context, resource, Inner(Wanted(members).template, adopt=adopted))
        kept = {name: value for name, value in without(resource.data).items() if name != "adopt"}
        return nesting.how_it_began(context, id, {**kept, "made_from": context.nested.fingerprint(context)})

    def check_policy(self, said: Any, _properties: Properties) -> None:
        """Raises PropertyError."""
        batches.checked(self.policies, said)

    def _begin(self, context: Context, resource: Resource, properties: Properties, name: str) -> Outcome:
        asked = replace(resource, properties=properties)
        policy = self._policy(asked, name)
        members = self._members(asked)
        if policy.health_check and (taken := clash(members)):
            raise StackValidationFailed(
                f"the health of a server would have the name of the server {taken!r}: name that one otherwise"
            )
        present = _present(context, asked)
        changing = [] if policy == _AT_ONCE else _changing(context, asked, members, present, policy)
        turns = policy.batches(changing, len(members))
        if policy.goes_back and changing and present.keys() - members.keys() - set(map(health_of, members)):
            turns.append([])  # for those that are to go, once nobody has to go back any more
        rolling = Rolling(
            policy=name,
            round=int(resource.data.get("round") or 0) + 1,
            stage=Stage.MEMBERS,
            now=(),
            left=tuple(map(tuple, turns)),
        )
        rolling = next_batch(rolling, policy, present)
        return self._go_on(context, self._act(context, asked, rolling), rolling)

    def _go_on(self, context: Context, resource: Resource, rolling: Rolling) -> Outcome:
        """As far as it goes without anybody's report."""
        while True:
            under_way = Outcome(False, resource.physical_id, rolling.into(resource.data))
            if rolling.stage is not Stage.PAUSE and _is_busy(context, resource):
                return under_way
            try:
                following = self._after(context, resource, rolling)
            except ResourceFailure as error:
                # A member that has just failed is among those that the group tells of.
                error.outcome = error.outcome or under_way
                raise
            if following.stage is Stage.DONE:
                return self._done(resource, following)
            rolling = following
            if rolling.stage is Stage.PAUSE:
                pause = timedelta(seconds=self._policy(resource, rolling.policy).pause_time)
                wake_at(context, resource, context.tx.now + pause)
                return Outcome(False, resource.physical_id, rolling.into(resource.data))
            resource = self._act(context, resource, rolling)

    def _act(self, context: Context, resource: Resource, rolling: Rolling) -> Resource:
        """Have the nested stack do what the stage asks for."""
        policy = self._policy(resource, rolling.policy)
        members = self._members(resource)
        checks = self._checks(resource, rolling, policy) if rolling.stage is Stage.HEALTH else {}
        asked = wanted(rolling, policy, members, checks, _present(context, resource))
        lenient = rolling.stage is Stage.BACK or policy.tolerated(len(members)) > 0
        inner = Inner(asked.template, held=asked.held, lenient=lenient)
        id = resource.physical_id
        known = context.nested.status(context, id)
        if id and known is not None and not known.deleted:
            context.nested.update(context, resource, inner)
        else:
            id = context.nested.create(context, resource, inner)
        data = rolling.into({**resource.data, "made_from": context.nested.fingerprint(context)})
        return replace(resource, physical_id=id, data=data)

    def _after(self, context: Context, resource: Resource, rolling: Rolling) -> Rolling:
        """What follows on a stage that is over. Raises ResourceFailure where that is the group's failure."""
        policy = self._policy(resource, rolling.policy)
        if rolling.stage is not Stage.PAUSE:
            rolling = self._judge(context, resource, rolling, policy)
            if rolling.stage is Stage.BACK:
                return rolling
            if rolling.stage is Stage.MEMBERS and policy.health_check and rolling.sound:
                return replace(rolling, stage=Stage.HEALTH)
            if not rolling.left:
                return replace(rolling, stage=Stage.DONE)
            if policy.pause_time and rolling.left[0]:
                return replace(rolling, stage=Stage.PAUSE)
        return next_batch(rolling, policy, _present(context, resource))

    def _judge(self, context: Context, resource: Resource, rolling: Rolling, policy: Policy) -> Rolling:
        """Who failed, and whether that is borne, or gone back from. Raises ResourceFailure where it is neither."""
        status = context.nested.status(context, resource.physical_id)
        if status is None:
            raise ResourceFailure("the nested stack is gone")
        inside = context.nested.resources(context, resource) if status.status is Status.FAILED else ()
        by_name = {each.name: each for each in inside if each.current}
        if rolling.stage is Stage.BACK:
            raise InnerFailure(_after_all(rolling, broken(by_name, rolling.now)), rolling.reason[1])
        if status.status is not Status.FAILED:
            return rolling
        turn = rolling.sound
        if rolling.stage is Stage.HEALTH:
            by_name = {name: by_name[health_of(name)] for name in turn if health_of(name) in by_name}
        failed = broken(by_name, turn)
        text, kind = status.failure()
        if not failed or any(each.status is Status.FAILED and not each.current for each in inside):
            raise InnerFailure(text, kind)  # no member's: nobody says that this may be
        rolling = replace(rolling, failed={**rolling.failed, **failed})
        total = len(self._members(resource))
        borne = policy.tolerated(total)
        if len(rolling.failed) <= borne:
            return rolling
        if borne:
            text = f"{text} ({len(rolling.failed)} of {total} members failed, {borne} may)"
        if policy.goes_back:
            return replace(rolling, stage=Stage.BACK, left=(), reason=(text, kind))
        error = InnerFailure(text, kind)
        error.outcome = Outcome(False, resource.physical_id, rolling.into(resource.data))
        raise error

    def _done(self, resource: Resource, rolling: Rolling) -> Outcome:
        data = without(rolling.into(resource.data))
        if not rolling.failed:
            return Outcome(True, resource.physical_id, data)
        total = len(self._members(resource))
        reason = f"{len(rolling.failed)} of {total} members failed, which is tolerated: {_few(rolling.failed)}"
        return Outcome(True, resource.physical_id, data, reason)

    def _members(self, resource: Resource) -> Members:
        """As the inner template has them: their values are known, and no functions any more."""
        values = ("properties", "metadata")
        return {
            name: {key: literal(part) if key in values else part for key, part in said.items()}
            for name, said in self.members(resource, resource.properties).items()
        }

    def _checks(self, resource: Resource, rolling: Rolling, policy: Policy) -> Members:
        """What checks the health of those that have changed; new in every round, so that it is run."""
        members = self.members(resource, resource.properties)
        found: dict[str, Mapping[str, Any]] = {}
        for name in rolling.sound:
            given = members[name]["properties"]
            said = {
                "config": policy.health_check,
                "server": given["server"],
                "signal_transport": given.get("signal_transport"),
                "timeout": policy.health_timeout,
            }
            known = {key: value for key, value in said.items() if value is not None}
            round = {"round": rolling.round}
            found[health_of(name)] = {"type": "OS::Heat::SoftwareDeployment", "properties": known, "metadata": round}
        return found

    def _policy(self, resource: Resource, name: str) -> Policy:
        return batches.of(self.policies, resource.definition.get("update_policy"), name)


def _is_busy(context: Context, resource: Resource) -> bool:
    status = context.nested.status(context, resource.physical_id)
    return status is not None and status.status is Status.IN_PROGRESS


def _present(context: Context, resource: Resource) -> Members:
    """The members as the nested stack has been told to have them."""
    known = context.nested.status(context, resource.physical_id)
    if known is None or known.deleted:
        return {}
    found: Members = context.nested.template(context, resource).get("resources") or {}
    return found


def _changing(context: Context, resource: Resource, members: Members, present: Members, policy: Policy) -> list[str]:
    """Whose turn has to come: who is not what they are to be, and of whom nobody knows that they are well."""
    inside = {each.name: each for each in context.nested.resources(context, resource) if each.current}
    before = Rolling.of(resource)
    unproven = frozenset(before.unproven) if before is not None and policy.health_check else frozenset()
    ill = frozenset(name for name in members if policy.health_check and broken(inside, (health_of(name),)))
    return [
        name
        for name, said in members.items()
        if present.get(name) != said or not _is_made(inside.get(name), said) or name in unproven or name in ill
    ]


def _is_made(resource: Resource | None, said: Mapping[str, Any]) -> bool:
    if resource is None or resource.action is Action.INIT or resource.status is not Status.COMPLETE:
        return False
    return all((resource.definition.get(part) or {}) == (said.get(part) or {}) for part in ("properties", "metadata"))


def _after_all(rolling: Rolling, failed: Mapping[str, str]) -> str:
    """Why a group failed whose batch went back, if it did."""
    back = [name for name in rolling.now if name not in failed]
    said = [rolling.reason[0]]
    if back:
        said.append(f"brought back to what it was before: {_few(back)}")
    if failed:
        said.append(f"could not be brought back: {_few(failed)}")
    return "; ".join(said)


def _few(names: Iterable[str]) -> str:
    said = list(names)
    return ", ".join(said[:_FEW]) + (f" and {len(said) - _FEW} more" if len(said) > _FEW else "")
