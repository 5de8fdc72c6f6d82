"""
Previews: the changes that an operation would make.

Resources are evaluated in dependency order. Attributes of a resource that would be created, replaced or changed are
unknown, so resources that use these attributes may change too.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from enum import StrEnum
from typing import Any

from stoker import hot
from stoker.hot import UNKNOWN, Definition
from stoker.model.errors import StokerError
from stoker.model.stack import Resource, Stack
from stoker.model.status import Action
from stoker.stacks.engine import Engine
from stoker.stacks.engine.apply_steps import resolve
from stoker.stacks.engine.changes import ResourceChange, decide
from stoker.stacks.engine.session import StackSession
from stoker.stacks.templates.prepare import ResolvedStack
from stoker.stacks.templates.scope import LiveScope
from stoker.store import resources
from stoker.store.tx import Tx


class Kind(StrEnum):
    """The kinds of changes, as Heat's API names them."""

    UNCHANGED = "unchanged"
    UPDATED = "updated"
    REPLACED = "replaced"
    ADDED = "added"
    DELETED = "deleted"


@dataclass(frozen=True, slots=True, kw_only=True)
class Change:
    """The change to one resource."""

    kind: Kind
    name: str
    type: str
    definition: Mapping[str, Any]
    #: The new properties as far as known; an unknown value is None.
    properties: Mapping[str, Any]
    #: The present resource, if it exists.
    resource: Resource | None
    #: Names of the properties that differ.
    differing: tuple[str, ...] = ()
    #: True if all ``properties`` are known.
    certain: bool = True
    #: The new properties, with UNKNOWN in place of unknown parts.
    evaluated: Mapping[str, Any] = field(default_factory=dict)


#: Returns what ``get_resource`` returns for a resource that does not exist yet, or UNKNOWN, from its change and the
#: changes to the resources before it.
References = Callable[[Change, Mapping[str, Change]], Any]

_KINDS = {
    ResourceChange.CREATE: Kind.ADDED,
    ResourceChange.NOOP: Kind.UNCHANGED,
    ResourceChange.AWAIT: Kind.UNCHANGED,
    ResourceChange.UPDATE: Kind.UPDATED,
    ResourceChange.RETRY: Kind.UPDATED,
    ResourceChange.REPLACE: Kind.REPLACED,
}


def know_nothing(_change: Change, _changes: Mapping[str, Change]) -> Any:
    """Return UNKNOWN for every resource that does not exist yet."""
    return UNKNOWN


def changes(
    tx: Tx, engine: Engine, stack: Stack, resolved: ResolvedStack, references: References = know_nothing
) -> list[Change]:
    """Return the changes of an update to ``resolved``, or of the creation of a stack that does not exist yet."""
    session = StackSession(tx, engine, stack)
    present = {resource.name: resource for resource in resources.of_stack(tx, stack.id) if resource.current}
    session.resources.preload(present.values())
    session.set(parameters=resolved.parameters.to_json(), version=resolved.template.version)
    by_name: dict[str, Change] = {}
    scope = _Beforehand(session, by_name, references)
    for name in hot.order(resolved.template):
        by_name[name] = _change(session, scope, Definition.from_json(resolved.definitions[name]))
    gone = [
        Change(
            kind=Kind.DELETED,
            name=resource.name,
            type=resource.type,
            definition=resource.definition,
            properties=resource.properties,
            resource=resource,
        )
        for resource in present.values()
        if resource.name not in resolved.definitions
    ]
    return [*by_name.values(), *gone]


def _change(session: StackSession, scope: _Beforehand, definition: Definition) -> Change:
    kind = session.engine.type(definition.type)
    resource = session.resources.find(definition.name)
    try:
        properties = resolve(kind, definition, scope)
    except StokerError as error:
        # Present values of resources may already be invalid.
        raise type(error)(f"resources.{definition.name}: {error.message}") from None
    exists = resource is not None and resource.action is not Action.INIT
    stale = resource is not None and exists and kind.is_stale(session.context, resource)
    deed = decide(resource, kind, definition, properties, stale=stale)
    before: Mapping[str, Any] = resource.properties if resource is not None and exists else {}
    differing = [name for name, value in properties.items() if before.get(name) != value] if exists else []
    return Change(
        kind=_KINDS[deed],
        name=definition.name,
        type=definition.type,
        definition=definition.to_json(),
        properties=without_unknown(properties),
        resource=resource if exists else None,
        differing=tuple(sorted(differing)),
        certain=not hot.weigh(properties)[1],
        evaluated=properties,
    )


def without_unknown(value: Any) -> Any:
    """Return ``value`` with null in place of unknown parts."""
    if value is UNKNOWN:
        return None
    if isinstance(value, Mapping):
        return {name: without_unknown(part) for name, part in value.items()}
    return [without_unknown(part) for part in value] if isinstance(value, list) else value


class _Beforehand(LiveScope):
    """Evaluates unchanged resources only. Values of all others are UNKNOWN, except for ``references``."""

    def __init__(self, session: StackSession, changes: Mapping[str, Change], references: References) -> None:
        super().__init__(session)
        self._changes = changes
        self._references = references

    def resource_id(self, name: str) -> Any:
        change = self._changes[name]
        if change.kind in (Kind.ADDED, Kind.REPLACED):
            return self._references(change, self._changes)
        return super().resource_id(name)

    def attribute(self, name: str, attribute: str, path: Sequence[Any] = ()) -> Any:
        if self._changes[name].kind is not Kind.UNCHANGED:
            return UNKNOWN
        return super().attribute(name, attribute, path)
