"""
Previews: the changes that an operation would make, including those of nested stacks.

Resources are evaluated in dependency order. Attributes of a resource that would be created, replaced or changed are
unknown, so resources that use these attributes may change too.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from functools import cached_property
from typing import Any
from uuid import uuid4

from msgspec.structs import replace

from stoker import hot
from stoker.hot import UNKNOWN, Definition, Environment
from stoker.model.errors import StackValidationFailed, StokerError
from stoker.model.stack import Action, Stack
from stoker.resources.roles import (
    HasNestedStack,
    NestedSpec,
    ProvidesConfig,
    ProvidesServer,
    describe_missing,
    is_template_name,
    takes_place,
)
from stoker.stacks.engine import Engine
from stoker.stacks.engine.decisions import DesiredResource
from stoker.stacks.engine.session import LiveScope, StackSession, new_resource
from stoker.stacks.templates.outline import Change, Kind, StackChanges
from stoker.stacks.templates.prepare import Identity, ResolvedStack, prepare_inner
from stoker.store import resources, servers, stacks
from stoker.store.tx import Tx

#: The id of a stack that does not exist yet.
_NO_ID = "None"


class Preview:
    """
    The changes of an update of ``stack`` to ``resolved``, or of its creation unless it ``exists``.

    Ids of our own stand for the configs that the operation would create.
    """

    def __init__(self, tx: Tx, engine: Engine, stack: Stack, resolved: ResolvedStack, *, exists: bool) -> None:
        self.tx = tx
        self.engine = engine
        self.project_id = stack.project_id
        self._stack = stack
        self._resolved = resolved
        self._exists = exists
        #: The new configs, by the id that stands for each.
        self.configs: dict[str, Change] = {}
        #: The first characters of these ids.
        self._mark = str(uuid4())[:24]

    @cached_property
    def levels(self) -> Sequence[StackChanges]:
        """
        The changes of each stack, outer before inner, including stacks and members that would be created. What depends
        on other changes is represented by its resource only. Raises Invalid for an invalid nested template.
        """
        top = StackChanges(path=(), stack=self._stack, existing_id=self._stack.id if self._exists else None)
        return list(self._list_levels(top, self._resolved, Environment.parse(self._resolved.source.environment)))

    def show(self, value: Any) -> Any:
        """Return ``value`` with null in place of unknown parts, and of texts with the id of a new config."""
        if isinstance(value, Mapping):
            return {name: self.show(part) for name, part in value.items()}
        if isinstance(value, list):
            return [self.show(part) for part in value]
        return None if value is UNKNOWN or (isinstance(value, str) and self._mark in value) else value

    def refer_to(self, change: Change) -> Any:
        """Return an id that stands for a new config, or that of the represented enrolled server, or UNKNOWN."""
        kind, name = self.engine.type(change.type), change.properties.get("name")
        if isinstance(kind, ProvidesConfig):
            id = f"{self._mark}{len(self.configs):012x}"
            self.configs[id] = change
            return id
        may_be_enrolled = isinstance(kind, ProvidesServer) and kind.may_be_enrolled
        if not may_be_enrolled or change.kind is not Kind.ADDED or not isinstance(name, str):
            return UNKNOWN
        enrolled = servers.find_enrolled(self.tx, name, self.project_id)
        return enrolled.id if enrolled else UNKNOWN

    def _list_levels(
        self, level: StackChanges, resolved: ResolvedStack, environment: Environment
    ) -> Iterator[StackChanges]:
        """Yield the changes to the stack of ``level``, which has none yet, and to the stacks in it."""
        listed = self._list_changes(level.stack, resolved)
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

    def _list_changes(self, stack: Stack, resolved: ResolvedStack) -> list[Change]:
        session = StackSession(self.tx, self.engine, stack)
        everything = session.resources.load_all()
        template = resolved.outline.template
        session.set(parameters=resolved.parameters.to_json(), version=template.version, action=Action.UPDATE)
        by_name: dict[str, Change] = {}
        scope = _Beforehand(session, by_name, self)
        for name in hot.order(template):
            change = _foresee(session, scope, resolved.outline.resources[name].definition)
            by_name[name] = replace(change, others=by_name)
        continuing = {change.resource.id for change in by_name.values() if change.resource is not None}
        gone = [
            Change.deletion(resource)
            for resource in everything
            if resource.id not in continuing and not (resource.current and resource.name in by_name)
        ]
        return [*by_name.values(), *gone]

    def _below(self, here: StackChanges, change: Change, environment: Environment) -> Iterator[StackChanges]:
        spec = self._spec(here, change)
        if spec is None:
            return
        inner = self._find_inner(here, change) if change.kind in (Kind.UPDATED, Kind.UNCHANGED) else None
        if inner is None:
            name = f"{here.stack.name}-{change.name}"
            stack = replace(here.stack, id=_NO_ID, name=name, parent_resource_id=None, outputs={})
            inner = self._inside(here, change, stack, here.existing_id)
        below = environment.below(change.name)
        files, budget = self._resolved.source.files, self.engine.budget(self.tx)
        try:
            resolved = prepare_inner(self.engine, spec, files, below, Identity.of(inner.stack), budget)
        except StokerError as error:
            raise type(error)(f"resources.{change.name}<{change.type}>.{error.message}") from None
        yield from self._list_levels(inner, resolved, below)

    def _spec(self, here: StackChanges, change: Change) -> NestedSpec | None:
        """Return the nested stack that the resource would have, or None if it has none or the update keeps it."""
        files, kind = self._resolved.source.files, self.engine.type(change.type)
        if is_template_name(change.type):
            return NestedSpec(files[change.type], change.properties)
        if not isinstance(kind, HasNestedStack) or not kind.has_foreseeable_members or change.kind is Kind.UNCHANGED:
            return None
        if named := kind.template_file(change.properties):
            key, file, parameters = named
            if file not in files:
                raise StackValidationFailed(f"resources.{change.name}: {key}: {describe_missing(file)}")
            return NestedSpec(files[file], parameters or {})
        present = change.resource or new_resource(self.tx, here.stack.id, change.name, change.type)
        return kind.spec(StackSession(self.tx, self.engine, here.stack).context, present, change.properties)

    def _gone(self, around: StackChanges, change: Change) -> Iterator[StackChanges]:
        inner = self._find_inner(around, change)
        if inner is not None:
            listed = resources.of_stack(self.tx, inner.stack.id)
            here = replace(inner, changes=[Change.deletion(resource) for resource in listed if resource.current])
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


def _foresee(session: StackSession, scope: _Beforehand, definition: Definition) -> Change:
    resource = session.resources.find(definition.name)
    try:
        desired = DesiredResource.of(session, definition, scope)
    except StokerError as error:
        # Present values of resources may already be invalid.
        raise type(error)(f"resources.{definition.name}: {error.message}") from None
    resource, change = desired.choose_resource(resource)
    return Change(
        change=change,
        name=definition.name,
        type=definition.type,
        definition=definition.to_json(),
        properties=desired.properties,
        resource=None if resource is None or resource.action is Action.INIT else resource,
    )


class _Beforehand(LiveScope):
    """Evaluates unchanged resources only. Values of all others are UNKNOWN, except for what the preview refers to."""

    def __init__(self, session: StackSession, changes: Mapping[str, Change], preview: Preview) -> None:
        super().__init__(session)
        self._changes = changes
        self._preview = preview
        self._new_ids: dict[str, Any] = {}

    def resource_id(self, name: str) -> Any:
        change = self._changes[name]
        if change.kind not in (Kind.ADDED, Kind.REPLACED):
            return super().resource_id(name)
        if name not in self._new_ids:
            self._new_ids[name] = self._preview.refer_to(change)
        return self._new_ids[name]

    def attribute(self, name: str, attribute: str, path: Sequence[Any] = ()) -> Any:
        if self._changes[name].kind is not Kind.UNCHANGED:
            return UNKNOWN
        return super().attribute(name, attribute, path)


def _takes_place(change: Change, removed: Change) -> bool:
    """Return whether ``change`` creates a nested stack that takes the place of a removed one."""
    if change.kind not in (Kind.ADDED, Kind.REPLACED) or removed.resource is None:
        return False
    return takes_place(change.name, change.type, change.properties, removed.resource)
