"""
Previews: the changes that an operation would make, including those of nested stacks.

Resources are evaluated in dependency order. Attributes of a resource that would be created, replaced or changed are
unknown, so resources that use these attributes may change too.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from enum import StrEnum
from typing import Any
from uuid import uuid4

from msgspec import Struct
from msgspec.structs import replace

from stoker import hot
from stoker.hot import UNKNOWN, Definition, Environment
from stoker.model.errors import StokerError
from stoker.model.stack import Resource, Stack
from stoker.model.status import Action, Status
from stoker.resources.nested import HasNestedStack, NestedSpec, is_template_name, takes_place
from stoker.stacks.engine import Engine, decisions
from stoker.stacks.engine.decisions import ResourceChange, choose_change, evaluate_properties
from stoker.stacks.engine.session import StackSession
from stoker.stacks.templates.outline import Outline
from stoker.stacks.templates.prepare import Identity, ResolvedStack, prepare_inner
from stoker.stacks.templates.scope import LiveScope
from stoker.store import resources, stacks
from stoker.store.tx import Tx


class Kind(StrEnum):
    """The kinds of changes, as Heat's API names them."""

    UNCHANGED = "unchanged"
    UPDATED = "updated"
    REPLACED = "replaced"
    ADDED = "added"
    DELETED = "deleted"


class Change(Struct, frozen=True, kw_only=True):
    """The change to one resource."""

    kind: Kind
    name: str
    type: str
    definition: Mapping[str, Any]
    #: The new properties, with UNKNOWN in place of unknown parts.
    properties: Mapping[str, Any]
    #: The present resource, if it exists.
    resource: Resource | None
    #: Names of the properties that differ.
    differing: tuple[str, ...] = ()
    #: True if an earlier operation has replaced or removed the resource, and has not deleted it.
    is_outdated: bool = False
    #: What the operation does with the resource; None: it removes the resource.
    change: ResourceChange | None = None

    @property
    def is_certain(self) -> bool:
        """Whether all properties are known."""
        return not hot.weigh(self.properties)[1]


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


def changes(tx: Tx, engine: Engine, stack: Stack, resolved: ResolvedStack, references: References) -> list[Change]:
    """Return the changes of an update to ``resolved``, or of the creation of a stack that does not exist yet."""
    session = StackSession(tx, engine, stack)
    everything = resources.of_stack(tx, stack.id)
    session.resources.preload(everything)
    template = resolved.outline.template
    session.set(parameters=resolved.parameters.to_json(), version=template.version, action=Action.UPDATE)
    by_name: dict[str, Change] = {}
    scope = _Beforehand(session, by_name, references)
    for name in hot.order(template):
        by_name[name] = _change(session, scope, Definition.from_json(resolved.definitions[name]))
    continuing = {change.resource.id for change in by_name.values() if change.resource is not None}
    gone = [
        replace(deletion(resource), is_outdated=not resource.current)
        for resource in everything
        if resource.id not in continuing and not (resource.current and resource.name in resolved.definitions)
    ]
    return [*by_name.values(), *gone]


def deletion(resource: Resource) -> Change:
    """Return the change that removes a resource."""
    return Change(
        kind=Kind.DELETED,
        name=resource.name,
        type=resource.type,
        definition=resource.definition,
        properties=resource.properties,
        resource=resource,
    )


def _change(session: StackSession, scope: _Beforehand, definition: Definition) -> Change:
    kind = session.engine.type(definition.type)
    resource = session.resources.find(definition.name)
    try:
        properties = evaluate_properties(session, kind, definition, scope)
    except StokerError as error:
        # Present values of resources may already be invalid.
        raise type(error)(f"resources.{definition.name}: {error.message}") from None
    resource, _ = decisions.reinstate(session, kind, definition, resource, properties)
    exists = resource is not None and resource.action is not Action.INIT
    change = choose_change(session, kind, definition, resource, properties)
    before: Mapping[str, Any] = resource.properties if resource is not None and exists else {}
    differing = [name for name, value in properties.items() if before.get(name) != value] if exists else []
    return Change(
        kind=_KINDS[change],
        name=definition.name,
        type=definition.type,
        definition=definition.to_json(),
        properties=properties,
        resource=resource if exists else None,
        differing=tuple(sorted(differing)),
        change=change,
    )


class _Beforehand(LiveScope):
    """Evaluates unchanged resources only. Values of all others are UNKNOWN, except for ``references``."""

    def __init__(self, session: StackSession, changes: Mapping[str, Change], references: References) -> None:
        super().__init__(session)
        self._changes = changes
        self._references = references
        self._new_ids: dict[str, Any] = {}

    def resource_id(self, name: str) -> Any:
        change = self._changes[name]
        if change.kind not in (Kind.ADDED, Kind.REPLACED):
            return super().resource_id(name)
        if name not in self._new_ids:
            self._new_ids[name] = self._references(change, self._changes)
        return self._new_ids[name]

    def attribute(self, name: str, attribute: str, path: Sequence[Any] = ()) -> Any:
        if self._changes[name].kind is not Kind.UNCHANGED:
            return UNKNOWN
        return super().attribute(name, attribute, path)


#: The id of a stack that does not exist yet.
_NO_ID = "None"


class StackChanges(Struct, frozen=True, kw_only=True):
    """The changes to one stack of a tree."""

    #: Names of the resources from the outermost stack to this one.
    path: tuple[str, ...]
    stack: Stack
    #: Id of the stack, or of the innermost stack around it that exists; None if none exists.
    existing_id: str | None
    #: Whether a group has generated the stack, or a stack around it.
    is_of_group: bool = False
    changes: Sequence[Change] = ()
    #: The new template; None if the stack is deleted.
    outline: Outline | None = None

    @property
    def exists(self) -> bool:
        """Whether the stack exists."""
        return self.stack.id == self.existing_id


def list_tree_changes(
    tx: Tx, engine: Engine, stack: Stack, resolved: ResolvedStack, *, exists: bool, references: References
) -> Iterator[StackChanges]:
    """
    Yield the changes of each stack, outer before inner, including stacks and members of groups that would be created.

    ``exists``: whether the outermost stack exists. A nested stack or a group that depends on other changes is
    represented by its resource only. Raises a kind of Invalid for an invalid nested template.
    """
    top = StackChanges(path=(), stack=stack, existing_id=stack.id if exists else None)
    tree = _Tree(tx, engine, resolved.source.files, references)
    return tree.list_levels(top, resolved, Environment.parse(resolved.source.environment))


@dataclass(frozen=True, slots=True)
class _Tree:
    tx: Tx
    engine: Engine
    files: Mapping[str, str]
    references: References

    def list_levels(
        self, level: StackChanges, resolved: ResolvedStack, environment: Environment
    ) -> Iterator[StackChanges]:
        """Yield the changes to the stack of ``level``, which has none yet, and to the stacks in it."""
        listed = changes(self.tx, self.engine, level.stack, resolved, self.references)
        here = replace(level, changes=listed, outline=resolved.outline)
        yield here
        removed = [change for change in listed if change.kind in (Kind.DELETED, Kind.REPLACED)]
        for change in listed:
            for predecessor in [each for each in removed if _takes_place(change, each)]:
                removed.remove(predecessor)
                yield from self._gone(here, predecessor)
            if change.kind is not Kind.DELETED and change.is_certain:
                yield from self._below(here, change, environment)
        for change in removed:
            yield from self._gone(here, change)

    def _below(self, here: StackChanges, change: Change, environment: Environment) -> Iterator[StackChanges]:
        spec = self._spec(here, change)
        if spec is None:
            return
        inner = self._find_inner(here, change) if change.kind in (Kind.UPDATED, Kind.UNCHANGED) else None
        if inner is None:
            name = f"{here.stack.name}-{change.name}"
            stack = replace(here.stack, id=_NO_ID, name=name, parent_resource_id=None, outputs={})
            inner = self._inside(here, change, stack, here.existing_id)
        below = replace(environment, parameters={}, registry=environment.registry.below(change.name))
        identity = Identity(inner.stack.id, inner.stack.name, inner.stack.project_id)
        try:
            resolved = prepare_inner(self.engine, spec, self.files, below, identity, self.engine.budget(self.tx))
        except StokerError as error:
            raise type(error)(f"resources.{change.name}<{change.type}>.{error.message}") from None
        yield from self.list_levels(inner, resolved, below)

    def _spec(self, here: StackChanges, change: Change) -> NestedSpec | None:
        """Return the nested stack that the resource would have, or None if it has none or the update keeps it."""
        if is_template_name(change.type):
            return NestedSpec(self.files[change.type], change.properties)
        kind = self.engine.type(change.type)
        if not isinstance(kind, HasNestedStack) or not kind.has_foreseeable_members or change.kind is Kind.UNCHANGED:
            return None
        present = change.resource or Resource(
            id=str(uuid4()),
            stack_id=here.stack.id,
            name=change.name,
            type=change.type,
            action=Action.INIT,
            status=Status.COMPLETE,
            created_at=self.tx.now,
        )
        return kind.spec(StackSession(self.tx, self.engine, here.stack).context, present, change.properties)

    def _gone(self, around: StackChanges, change: Change) -> Iterator[StackChanges]:
        inner = self._find_inner(around, change)
        if inner is not None:
            listed = resources.of_stack(self.tx, inner.stack.id)
            here = replace(inner, changes=[deletion(resource) for resource in listed if resource.current])
            yield here
            for deleted in here.changes:
                yield from self._gone(here, deleted)

    def _find_inner(self, around: StackChanges, change: Change) -> StackChanges | None:
        """Return the nested stack of a resource whose template came with the request, or of a group."""
        resource = change.resource
        if resource is None or not resource.physical_id:
            return None
        if not (self._is_group(resource.type) or is_template_name(resource.type)):
            return None
        stack = stacks.find(self.tx, resource.physical_id)
        return self._inside(around, change, stack, stack.id) if stack else None

    def _inside(self, around: StackChanges, change: Change, stack: Stack, existing_id: str | None) -> StackChanges:
        is_of_group = around.is_of_group or self._is_group(change.type)
        path = (*around.path, change.name)
        return StackChanges(path=path, stack=stack, existing_id=existing_id, is_of_group=is_of_group)

    def _is_group(self, type: str) -> bool:
        kind = self.engine.type(type)
        return isinstance(kind, HasNestedStack) and kind.has_foreseeable_members


def _takes_place(change: Change, removed: Change) -> bool:
    """Return whether ``change`` creates a nested stack that takes the place of a removed one."""
    if change.kind not in (Kind.ADDED, Kind.REPLACED) or removed.resource is None:
        return False
    return takes_place(change.name, change.type, change.properties, removed.resource)
