"""
What an operation would do, without doing it.

Resources are looked at in their order: what would be made anew, or changed, tells nothing yet, and whoever asks it
for something may change too.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from enum import StrEnum
from typing import Any

from stoker import hot
from stoker.hot import UNKNOWN, Definition
from stoker.model.errors import StokerError
from stoker.model.stack import Resource, Stack
from stoker.model.status import Action
from stoker.stacks.applying import resolve
from stoker.stacks.decide import Deed, decide
from stoker.stacks.engine import Engine
from stoker.stacks.prepare import Prepared
from stoker.stacks.scope import LiveScope
from stoker.stacks.transition import Transition
from stoker.store import resources
from stoker.store.tx import Tx


class Kind(StrEnum):
    """Under these names Heat's API lists them."""

    UNCHANGED = "unchanged"
    UPDATED = "updated"
    REPLACED = "replaced"
    ADDED = "added"
    DELETED = "deleted"


@dataclass(frozen=True, slots=True, kw_only=True)
class Change:
    kind: Kind
    name: str
    type: str
    definition: Mapping[str, Any]
    #: As far as they can be told beforehand; None where that has to be seen.
    properties: Mapping[str, Any]
    #: As it is now, if it is.
    resource: Resource | None
    #: Names of the properties that differ.
    differing: tuple[str, ...] = ()


_KINDS = {
    Deed.CREATE: Kind.ADDED,
    Deed.KEEP: Kind.UNCHANGED,
    Deed.JOIN: Kind.UNCHANGED,
    Deed.UPDATE: Kind.UPDATED,
    Deed.RETRY: Kind.UPDATED,
    Deed.REPLACE: Kind.REPLACED,
}


def changes(tx: Tx, engine: Engine, stack: Stack, prepared: Prepared) -> list[Change]:
    """What an update to ``prepared`` would do, or the creation of a stack that is not there."""
    transition = Transition(tx, engine, stack)
    present = {each.name: each for each in resources.of_stack(tx, stack.id) if each.current}
    transition.read_all(present.values())
    transition.set(parameters=prepared.parameters.to_json(), version=prepared.template.version)
    found: dict[str, Change] = {}
    scope = _Beforehand(transition, found)
    for name in hot.order(prepared.template):
        found[name] = _change(transition, scope, Definition.from_json(prepared.definitions[name]))
    gone = [
        Change(
            kind=Kind.DELETED,
            name=each.name,
            type=each.type,
            definition=each.definition,
            properties=each.properties,
            resource=each,
        )
        for each in present.values()
        if each.name not in prepared.definitions
    ]
    return [*found.values(), *gone]


def _change(transition: Transition, scope: _Beforehand, definition: Definition) -> Change:
    kind = transition.engine.type(definition.type)
    resource = transition.resource(definition.name)
    try:
        properties = resolve(kind, definition, scope)
    except StokerError as error:
        # What resources tell now may be wrong already.
        raise type(error)(f"resources.{definition.name}: {error.message}") from None
    exists = resource is not None and resource.action is not Action.INIT
    stale = resource is not None and exists and kind.is_stale(transition.context, resource)
    deed = decide(resource, kind, definition, properties, stale=stale)
    before: Mapping[str, Any] = resource.properties if resource is not None and exists else {}
    differing = [name for name, value in properties.items() if before.get(name) != value] if exists else []
    return Change(
        kind=_KINDS[deed],
        name=definition.name,
        type=definition.type,
        definition=definition.to_json(),
        properties=known(properties),
        resource=resource if exists else None,
        differing=tuple(sorted(differing)),
    )


def known(value: Any) -> Any:
    """The value with null for what is not known yet."""
    if value is UNKNOWN:
        return None
    if isinstance(value, Mapping):
        return {name: known(part) for name, part in value.items()}
    return [known(part) for part in value] if isinstance(value, list) else value


class _Beforehand(LiveScope):
    """What stays as it is answers; the rest is UNKNOWN."""

    def __init__(self, transition: Transition, found: Mapping[str, Change]) -> None:
        super().__init__(transition)
        self._found = found

    def resource_id(self, name: str) -> Any:
        if self._found[name].kind in (Kind.ADDED, Kind.REPLACED):
            return UNKNOWN
        return super().resource_id(name)

    def attribute(self, name: str, attribute: str, path: Sequence[Any] = ()) -> Any:
        if self._found[name].kind is not Kind.UNCHANGED:
            return UNKNOWN
        return super().attribute(name, attribute, path)
