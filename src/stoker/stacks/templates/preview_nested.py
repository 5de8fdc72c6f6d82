"""Previews of updates including nested stacks."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from uuid import uuid4

from stoker.hot import Environment
from stoker.model.errors import StokerError
from stoker.model.stack import Resource, Stack
from stoker.model.status import Action, Status
from stoker.resources.env import NestedSpec
from stoker.resources.nested_base import is_template_name
from stoker.stacks.engine import Engine
from stoker.stacks.engine.session import StackSession
from stoker.stacks.templates.outline import OutlinedResource
from stoker.stacks.templates.prepare import Identity, ResolvedStack, prepare_inner
from stoker.stacks.templates.preview import Change, Kind, References, changes, know_nothing
from stoker.store import resources, stacks
from stoker.store.tx import Tx

#: The id of a stack that does not exist yet.
_NO_ID = "None"


@dataclass(frozen=True, slots=True, kw_only=True)
class StackChanges:
    """The changes to one stack of a tree."""

    #: Names of the resources from the outermost stack to this one.
    path: tuple[str, ...]
    stack: Stack
    #: Id of the stack, or of the innermost stack around it that exists; None if none exists.
    existing_id: str | None
    changes: Sequence[Change]
    #: The resources of the new template; empty if the stack is deleted.
    outline: Mapping[str, OutlinedResource]


def all_changes(tx: Tx, engine: Engine, stack: Stack, resolved: ResolvedStack) -> Iterator[tuple[Stack, Change]]:
    """
    Yield each change with its stack, for nested stacks that exist.

    A nested stack whose parameters depend on other changes is represented by its resource only. Raises a kind of
    Invalid for an invalid nested template.
    """
    tree = _Tree(tx, engine, resolved.source.files, know_nothing, with_new=False)
    for level in tree.at((), stack, stack.id, resolved, Environment.parse(resolved.source.environment)):
        for change in level.changes:
            yield level.stack, change


def list_tree_changes(
    tx: Tx, engine: Engine, stack: Stack, resolved: ResolvedStack, *, exists: bool, references: References
) -> Iterator[StackChanges]:
    """
    Yield the changes of each stack, outer before inner, including stacks and members of groups that would be created.

    ``exists``: whether the outermost stack exists. A nested stack or a group that depends on other changes is
    represented by its resource only. Raises a kind of Invalid for an invalid nested template.
    """
    tree = _Tree(tx, engine, resolved.source.files, references, with_new=True)
    existing_id = stack.id if exists else None
    return tree.at((), stack, existing_id, resolved, Environment.parse(resolved.source.environment))


@dataclass(frozen=True, slots=True)
class _Tree:
    tx: Tx
    engine: Engine
    files: Mapping[str, str]
    references: References
    #: Whether to include groups, and stacks that do not exist yet.
    with_new: bool

    def at(
        self,
        path: tuple[str, ...],
        stack: Stack,
        existing_id: str | None,
        resolved: ResolvedStack,
        environment: Environment,
    ) -> Iterator[StackChanges]:
        """Yield the changes to a stack and to the stacks in it."""
        listed = changes(self.tx, self.engine, stack, resolved, self.references)
        here = StackChanges(path=path, stack=stack, existing_id=existing_id, changes=listed, outline=resolved.outline)
        yield here
        for change in listed:
            if change.kind is Kind.DELETED:
                inner = self._find_inner(change)
                if inner is not None:
                    yield from self._gone((*path, change.name), inner)
            elif change.certain:
                yield from self._below(here, change, environment)

    def _below(self, here: StackChanges, change: Change, environment: Environment) -> Iterator[StackChanges]:
        inner = self._find_inner(change) if change.kind in (Kind.UPDATED, Kind.UNCHANGED) else None
        if inner is None and not self.with_new:
            return
        spec = self._spec(here, change)
        if spec is None:
            return
        existing_id = inner.id if inner else here.existing_id
        if inner is None:
            inner = replace(
                here.stack, id=_NO_ID, name=f"{here.stack.name}-{change.name}", parent_resource_id=None, outputs={}
            )
        below = replace(environment, parameters={}, registry=environment.registry.below(change.name))
        identity = Identity(inner.id, inner.name, inner.project_id)
        try:
            resolved = prepare_inner(self.engine, spec, self.files, below, identity, self.engine.budget(self.tx))
        except StokerError as error:
            raise type(error)(f"resources.{change.name}<{change.type}>.{error.message}") from None
        yield from self.at((*here.path, change.name), inner, existing_id, resolved, below)

    def _spec(self, here: StackChanges, change: Change) -> NestedSpec | None:
        """Return the nested stack that the resource would have, or None if it has none or the update keeps it."""
        if is_template_name(change.type):
            return NestedSpec(self.files[change.type], change.properties)
        group_spec = self.engine.type(change.type).group_spec
        if group_spec is None or change.kind is Kind.UNCHANGED:
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
        return group_spec(StackSession(self.tx, self.engine, here.stack).context, present, change.evaluated)

    def _gone(self, path: tuple[str, ...], stack: Stack) -> Iterator[StackChanges]:
        listed = [_gone(resource) for resource in resources.of_stack(self.tx, stack.id) if resource.current]
        yield StackChanges(path=path, stack=stack, existing_id=stack.id, changes=listed, outline={})
        for change in listed:
            inner = self._find_inner(change)
            if inner is not None:
                yield from self._gone((*path, change.name), inner)

    def _find_inner(self, change: Change) -> Stack | None:
        """Return the nested stack of a resource whose template came with the request, or of a group."""
        id = change.resource.physical_id if change.resource else None
        is_group = self.with_new and self.engine.type(change.type).group_spec is not None
        if not id or not (is_group or is_template_name(change.type)):
            return None
        return stacks.find(self.tx, id)


def _gone(resource: Resource) -> Change:
    return Change(
        kind=Kind.DELETED,
        name=resource.name,
        type=resource.type,
        definition=resource.definition,
        properties=resource.properties,
        resource=resource,
    )
