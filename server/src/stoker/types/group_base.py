"""
Groups: resources with a nested stack of similar members, which change all at once or in batches.

Each batch is one operation of the nested stack. When the operation ends, ``check`` evaluates the result and starts the
next stage. The state of the roll-out is stored in the resource's data (see ``rollout``).
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from datetime import timedelta
from functools import partial
from types import MappingProxyType
from typing import Any

from msgspec.structs import replace

from stoker.hot.words import list_few
from stoker.model.errors import StackValidationFailed
from stoker.model.stack import Action, Resource, Status
from stoker.resources.base import Context, NestedFailure, Outcome, Properties, Replace, ResourceFailure, wake_at
from stoker.resources.properties import Property
from stoker.resources.roles import Members, NestedSpec, escape
from stoker.stacks.engine.session import LiveScope
from stoker.store import stacks
from stoker.types import nested_stacks, rollout
from stoker.types.nested_stacks import NestedType
from stoker.types.rollout import (
    CHANGING,
    CREATING,
    Rollout,
    Stage,
    UpdatePolicy,
    broken,
    describe_clash,
    health_of,
    next_batch,
    plan_members,
    template_of,
    without,
)

_AT_ONCE = UpdatePolicy()


def _tolerate(context: Context, resource: Resource, act: Callable[[Context, Resource], Outcome]) -> Outcome:
    """Return the outcome of an action on the nested stack, which may fail for members that the roll-out tolerates."""
    try:
        return act(context, resource)
    except NestedFailure:
        tolerated = resource.data.get("failed") or {}
        failed = {
            member.name.removesuffix(health_of(""))
            for member in nested_stacks.list_resources(context, resource)
            if member.current and member.status is Status.FAILED
        }
        if resource.action is Action.DELETE or not failed or not failed <= set(tolerated):
            raise
        return Outcome(reason=f"members that had failed before are left as they are: {list_few(sorted(failed))}")


class GroupType(NestedType):
    """A nested stack of similar members."""

    #: Schema of the type's ``update_policy``.
    policies: Mapping[str, Property] = MappingProxyType({})

    def definitions(self, resource: Resource, properties: Properties) -> Members:
        """Return the definitions of the members by name, for given properties and resource data."""
        raise NotImplementedError

    def select(self, context: Context, resource: Resource, properties: Properties) -> Resource:
        """Return the resource with the data that its members depend on."""
        return resource

    def create(self, context: Context, resource: Resource, properties: Properties) -> Outcome:
        """Create the members. A group that failed is retried in place, with the policy for changes if it has one."""
        resource = self.select(context, resource, properties)
        if nested_stacks.find_existing(context, resource) is None:
            return self._begin(context, resource, properties, CREATING)
        # The group failed earlier; it is retried in place.
        policy = resource.definition.get("update_policy") or {}
        return self._begin(context, resource, properties, CHANGING if policy.get(CHANGING) else CREATING)

    def update(self, context: Context, resource: Resource, properties: Properties) -> Outcome:
        """Start a roll-out of the changed members. Raises Replace if the nested stack does not exist."""
        if nested_stacks.find_existing(context, resource) is None:
            raise Replace(resource.name)
        return self._begin(context, self.select(context, resource, properties), properties, CHANGING)

    def check(self, context: Context, resource: Resource) -> Outcome:
        """Continue the roll-out when a stage has ended or a pause is over."""
        rollout = Rollout.of(resource)
        if rollout is None or resource.action not in (Action.CREATE, Action.UPDATE):
            return _tolerate(context, resource, super().check)
        return self._go_on(context, resource, rollout)

    def act(self, context: Context, resource: Resource, action: Action) -> Outcome:
        """Act on the members. Those whose failure the last roll-out tolerated stay failed."""
        return _tolerate(context, resource, partial(super().act, action=action))

    def adopt(self, context: Context, resource: Resource, properties: Properties) -> Outcome:
        """Create the nested stack from the abandoned resources."""
        members = self._members(replace(resource, properties=properties))
        adopted = resource.data.get("adopt") or {}
        id = nested_stacks.create_stack(context, resource, NestedSpec(template_of(members), adopt=adopted))
        kept = {name: value for name, value in without(resource.data).items() if name != "adopt"}
        return nested_stacks.began_status(context, id, nested_stacks.mark(context, kept))

    def attribute_at(self, context: Context, resource: Resource, name: str, path: tuple[Any, ...]) -> Any:
        if name.startswith(nested_stacks.INSIDE):
            return nested_stacks.inside(context, resource, name, path)
        scope = nested_stacks.scope_of(context, resource)
        return None if scope is None else self.collect(resource, scope, name, path)

    def collect(self, resource: Resource, scope: LiveScope, name: str, path: tuple[Any, ...]) -> Any:
        """Return an attribute of the group; for any other name, this attribute of all members."""
        raise NotImplementedError

    def spec(self, context: Context, resource: Resource, properties: Properties) -> NestedSpec:
        """Return the nested stack with all members, as it is after the last batch."""
        selected = replace(self.select(context, resource, properties), properties=properties)
        return NestedSpec(template_of(self._members(selected)))

    def check_policy(self, policy: Any, properties: Properties) -> None:
        """Validate the ``update_policy``. Raises PropertyError."""
        rollout.check(self.policies, policy)

    def _begin(self, context: Context, resource: Resource, properties: Properties, name: str) -> Outcome:
        asked = replace(resource, properties=properties)
        policy = self._policy(asked, name)
        members = self._members(asked)
        if policy.health_check and (problem := describe_clash(members)):
            raise StackValidationFailed(problem)
        present = _present(context, asked)
        changing = [] if policy == _AT_ONCE else _changing(context, asked, members, present, policy)
        turns = policy.batches(changing, len(members))
        if policy.goes_back and changing and present.keys() - members.keys() - set(map(health_of, members)):
            turns.append([])  # a last batch without members removes old ones, once no roll-back can need them
        rollout = Rollout(
            policy=name,
            round=int(resource.data.get("round") or 0) + 1,
            stage=Stage.MEMBERS,
            now=(),
            left=tuple(map(tuple, turns)),
        )
        rollout = next_batch(rollout, policy, present)
        return self._go_on(context, self._act(context, asked, rollout), rollout)

    def _go_on(self, context: Context, resource: Resource, rollout: Rollout) -> Outcome:
        """Advance through the stages until a stage has to wait for the nested stack or for a time."""
        while True:
            under_way = Outcome(False, resource.physical_id, rollout.into(resource.data))
            stack = nested_stacks.find(context, resource.physical_id)
            if rollout.stage is not Stage.PAUSE and stack is not None and stack.status is Status.IN_PROGRESS:
                return under_way
            try:
                following = self._after(context, resource, rollout)
            except ResourceFailure as error:
                # The stored state must list the member that has just failed among the failed members.
                error.outcome = error.outcome or under_way
                raise
            if following.stage is Stage.DONE:
                return self._done(resource, following)
            rollout = following
            if rollout.stage is Stage.PAUSE:
                pause = timedelta(seconds=self._policy(resource, rollout.policy).pause_time)
                wake_at(context, resource, context.tx.now + pause)
                return Outcome(False, resource.physical_id, rollout.into(resource.data))
            resource = self._act(context, resource, rollout)

    def _act(self, context: Context, resource: Resource, rollout: Rollout) -> Resource:
        """Start the nested stack's operation for the current stage."""
        policy = self._policy(resource, rollout.policy)
        members = self._members(resource)
        checks = self._checks(resource, rollout, policy) if rollout.stage is Stage.HEALTH else {}
        inner = plan_members(rollout, policy, members, checks, _present(context, resource))
        id = resource.physical_id
        if nested_stacks.find_existing(context, resource) is not None:
            nested_stacks.update_stack(context, resource, inner)
        else:
            id = nested_stacks.create_stack(context, resource, inner)
        data = rollout.into(nested_stacks.mark(context, resource.data))
        return replace(resource, physical_id=id, data=data)

    def _after(self, context: Context, resource: Resource, rollout: Rollout) -> Rollout:
        """Return the state after a completed stage. Raises ResourceFailure if the group fails."""
        policy = self._policy(resource, rollout.policy)
        if rollout.stage is not Stage.PAUSE:
            rollout = self._judge(context, resource, rollout, policy)
            if rollout.stage is Stage.BACK:
                return rollout
            if rollout.stage is Stage.MEMBERS and policy.health_check and rollout.sound:
                return replace(rollout, stage=Stage.HEALTH)
            if not rollout.left:
                return replace(rollout, stage=Stage.DONE)
            if policy.pause_time and rollout.left[0]:
                return replace(rollout, stage=Stage.PAUSE)
        return next_batch(rollout, policy, _present(context, resource))

    def _judge(self, context: Context, resource: Resource, rollout: Rollout, policy: UpdatePolicy) -> Rollout:
        """
        Record the members that failed, and decide whether the policy tolerates them or requires a roll-back.

        Raises ResourceFailure if it does neither.
        """
        stack = nested_stacks.find(context, resource.physical_id)
        if stack is None:
            raise ResourceFailure("the nested stack is gone")
        has_failed = stack.status is Status.FAILED
        inside = nested_stacks.list_resources(context, resource) if has_failed else ()
        if rollout.stage is Stage.BACK:
            raise NestedFailure(_after_all(rollout, broken(_current(inside), rollout.now)), rollout.reason[1])
        if not has_failed:
            return rollout
        failed, failure = _failed_members(rollout, inside), nested_stacks.get_failure(stack)
        if not failed:
            raise NestedFailure(*failure)
        return self._bear(resource, replace(rollout, failed={**rollout.failed, **failed}), policy, *failure)

    def _bear(self, resource: Resource, rollout: Rollout, policy: UpdatePolicy, text: str, kind: str) -> Rollout:
        """Return the state after members have failed. ``text`` and ``kind`` are those of the NestedFailure."""
        total = len(self._members(resource))
        borne = policy.tolerated(total)
        if len(rollout.failed) <= borne:
            return rollout
        if borne:
            text = f"{text} ({len(rollout.failed)} of {total} members failed, {borne} may)"
        if policy.goes_back:
            return replace(rollout, stage=Stage.BACK, left=(), reason=(text, kind))
        error = NestedFailure(text, kind)
        error.outcome = Outcome(False, resource.physical_id, rollout.into(resource.data))
        raise error

    def _done(self, resource: Resource, rollout: Rollout) -> Outcome:
        data = without(rollout.into(resource.data))
        if not rollout.failed:
            return Outcome(True, resource.physical_id, data)
        total = len(self._members(resource))
        reason = f"{len(rollout.failed)} of {total} members failed, which is tolerated: {list_few(rollout.failed)}"
        return Outcome(True, resource.physical_id, data, reason)

    def _members(self, resource: Resource) -> Members:
        return escape(self.definitions(resource, resource.properties))

    def _checks(self, resource: Resource, rollout: Rollout, policy: UpdatePolicy) -> Members:
        """
        Return the health check members of the changed members. Their metadata changes with each round, so the checks
        run again.
        """
        members = self.definitions(resource, resource.properties)
        checks: dict[str, Mapping[str, Any]] = {}
        for name in rollout.sound:
            member_properties = members[name]["properties"]
            candidates = {
                "config": policy.health_check,
                "server": member_properties["server"],
                "signal_transport": member_properties.get("signal_transport"),
                "timeout": policy.health_timeout,
            }
            check_properties = {key: value for key, value in candidates.items() if value is not None}
            round = {"round": rollout.round}
            checks[health_of(name)] = {
                "type": "OS::Heat::SoftwareDeployment",
                "properties": check_properties,
                "metadata": round,
            }
        return checks

    def _policy(self, resource: Resource, name: str) -> UpdatePolicy:
        return rollout.of_resource(self.policies, resource.definition.get("update_policy"), name)


def _current(inside: Sequence[Resource]) -> dict[str, Resource]:
    return {member.name: member for member in inside if member.current}


def _failed_members(rollout: Rollout, inside: Sequence[Resource]) -> Mapping[str, str]:
    """
    Return the members of the batch that failed, or whose health check did, with the reasons; none if the failure is not
    only theirs, so that the tolerance does not apply.
    """
    if any(member.status is Status.FAILED and not member.current for member in inside):
        return {}
    by_name, turn = _current(inside), rollout.sound
    if rollout.stage is Stage.HEALTH:
        by_name = {name: by_name[health_of(name)] for name in turn if health_of(name) in by_name}
    return broken(by_name, turn)


def _present(context: Context, resource: Resource) -> Members:
    stack = nested_stacks.find_existing(context, resource)
    return {} if stack is None else stacks.source(context.tx, stack.id).template.get("resources") or {}


def _changing(
    context: Context, resource: Resource, members: Members, present: Members, policy: UpdatePolicy
) -> list[str]:
    """
    Return the members to change: members that differ from their definition or are not complete, and members
    whose last health check failed or did not finish.
    """
    inside = _current(nested_stacks.list_resources(context, resource))
    unsound = _find_unsound(resource, members, inside) if policy.health_check else frozenset()
    return [
        name
        for name, definition in members.items()
        if present.get(name) != definition or not _is_made(inside.get(name), definition) or name in unsound
    ]


def _find_unsound(resource: Resource, members: Members, inside: Mapping[str, Resource]) -> frozenset[str]:
    """Return the members whose last health check failed or did not finish."""
    before = Rollout.of(resource)
    unproven = before.unproven if before is not None else ()
    return frozenset((*unproven, *(name for name in members if broken(inside, (health_of(name),)))))


def _is_made(resource: Resource | None, definition: Mapping[str, Any]) -> bool:
    if resource is None or resource.action is Action.INIT or resource.status is not Status.COMPLETE:
        return False
    return all(
        (resource.definition.get(part) or {}) == (definition.get(part) or {}) for part in ("properties", "metadata")
    )


def _after_all(rollout: Rollout, failed: Mapping[str, str]) -> str:
    """
    Return the reason of a group that failed: the first failure, and the members that were and were not rolled back.
    """
    back = [name for name in rollout.now if name not in failed]
    reasons = [rollout.reason[0]]
    if back:
        reasons.append(f"brought back to what it was before: {list_few(back)}")
    if failed:
        reasons.append(f"could not be brought back: {list_few(failed)}")
    return "; ".join(reasons)
