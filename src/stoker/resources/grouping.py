"""Groups: resources whose nested stack has members made alike, changed all at once or in batches."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import timedelta
from typing import Any

from stoker.hot import literal
from stoker.model.errors import StackValidationFailed
from stoker.model.stack import Resource
from stoker.model.status import Action
from stoker.resources import nesting
from stoker.resources import properties as schemas
from stoker.resources.base import LONGEST_WAIT, Context, Outcome, Properties, Replace, wake_at
from stoker.resources.properties import Property, PropertyError
from stoker.resources.services import Inner

#: A member's name to its definition, as in a template.
Members = Mapping[str, Mapping[str, Any]]
_VERSION = "2021-04-16"

ROLLING: Mapping[str, Property] = {
    "max_batch_size": Property(kind="integer", default=1, minimum=1),
    "pause_time": Property(kind="number", default=0, minimum=0, maximum=LONGEST_WAIT),
}
MIN_IN_SERVICE = Property(kind="integer", default=0, minimum=0)


@dataclass(frozen=True, slots=True)
class Group:
    """``members``: those that properties and what the resource keeps for itself ask for."""

    members: Callable[[Resource, Properties], Members]
    #: The schema of the type's ``rolling_update``.
    rolling: Mapping[str, Property]

    def create(self, context: Context, resource: Resource, properties: Properties) -> Outcome:
        known = context.nested.status(context, resource.physical_id)
        if known is not None and not known.deleted:
            return self.update(context, resource, properties)  # it failed, and is tried again in place
        members = self._members(resource, properties)
        policy = self._policy(resource, "batch_create")
        wanted = replace(resource, properties=properties)
        return self._go_on(context, wanted, members, _batches(list(members), len(members), policy), policy)

    def update(self, context: Context, resource: Resource, properties: Properties) -> Outcome:
        if context.nested.status(context, resource.physical_id) is None:
            raise Replace(resource.name)
        members = self._members(resource, properties)
        policy = self._policy(resource, "rolling_update")
        present = _present(context, resource)
        changing = [name for name, said in members.items() if present.get(name) != said]
        wanted = replace(resource, properties=properties)
        return self._go_on(context, wanted, members, _batches(changing, len(members), policy), policy)

    def check(self, context: Context, resource: Resource) -> Outcome:
        """Also asked when a pause is over."""
        outcome = nesting.check(context, resource)
        batches = resource.data.get("batches") or []
        if not outcome.done or not batches or resource.action not in (Action.CREATE, Action.UPDATE):
            return outcome
        policy = self._policy(resource, "batch_create" if resource.action is Action.CREATE else "rolling_update")
        pause = timedelta(seconds=policy["pause_time"]) if policy else timedelta()
        if pause and not resource.data.get("paused"):
            wake_at(context, resource, context.tx.now + pause)
            return Outcome(False, data={**resource.data, "paused": True})
        members = self._members(resource, resource.properties)
        return self._go_on(context, resource, members, batches, policy)

    def adopt(self, context: Context, resource: Resource, properties: Properties) -> Outcome:
        members = self._members(resource, properties)
        inner = Inner(_template(members), adopt=resource.data.get("adopt") or {})
        id = context.nested.create(context, resource, inner)
        kept = {name: value for name, value in resource.data.items() if name != "adopt"}
        outcome = nesting.check(context, replace(resource, physical_id=id))
        return replace(outcome, physical_id=id, data={**kept, "made_from": context.nested.fingerprint(context)})

    def is_stale(self, context: Context, resource: Resource) -> bool:
        return bool(resource.data.get("made_from") != context.nested.fingerprint(context))

    def _members(self, resource: Resource, properties: Properties) -> Members:
        """As the inner template has them: their values are known, and no functions any more."""
        values = ("properties", "metadata")
        return {
            name: {key: literal(part) if key in values else part for key, part in said.items()}
            for name, said in self.members(resource, properties).items()
        }

    def _go_on(
        self,
        context: Context,
        resource: Resource,
        members: Members,
        batches: Sequence[Sequence[str]],
        policy: Mapping[str, Any] | None,
    ) -> Outcome:
        """Change the next batch; what stands in the later ones stays as it is, or away."""
        left = list(batches[1:])
        later = {name for batch in left for name in batch}
        present = _present(context, resource)
        now = {
            name: present[name] if name in later else said
            for name, said in members.items()
            if name not in later or name in present
        }
        data = {
            **resource.data,
            "made_from": context.nested.fingerprint(context),
            "batches": left,
            "paused": False,
        }
        inner = Inner(_template(now))
        if resource.physical_id:
            context.nested.update(context, resource, inner)
            id = resource.physical_id
        else:
            id = context.nested.create(context, resource, inner)
        begun = replace(resource, physical_id=id, data=data)
        outcome = nesting.check(context, begun)
        if outcome.done and left:
            outcome = self.check(context, begun)
        return replace(outcome, physical_id=id, data=data if outcome.data is None else outcome.data)

    def _policy(self, resource: Resource, name: str) -> Mapping[str, Any] | None:
        said = (resource.definition.get("update_policy") or {}).get(name)
        if said is None:
            return None
        try:
            return schemas.check(self.rolling if name == "rolling_update" else ROLLING, said)
        except PropertyError as error:
            place = ".".join(("update_policy", name, *map(str, error.path)))
            raise StackValidationFailed(f"{place}: {error.problem}") from None


def _template(members: Members) -> dict[str, Any]:
    return {"heat_template_version": _VERSION, "resources": dict(members)}


def _present(context: Context, resource: Resource) -> Members:
    """The members as the nested stack has been told to have them."""
    found: Members = context.nested.template(context, resource).get("resources") or {}
    return found


def _batches(names: Sequence[str], total: int, policy: Mapping[str, Any] | None) -> list[list[str]]:
    """Without a policy all at once; else never more than leaves enough of them in service."""
    if policy is None or not names:
        return [list(names)]
    size = min(policy["max_batch_size"], max(1, total - policy.get("min_in_service", 0)))
    return [list(names[at : at + size]) for at in range(0, len(names), size)]
