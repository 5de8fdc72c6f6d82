"""Previews of updates including nested stacks."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace

from stoker.hot import Environment
from stoker.model.errors import StokerError
from stoker.model.stack import Resource, Stack
from stoker.resources.env import NestedSpec
from stoker.resources.nested_base import is_template_name
from stoker.stacks.engine import Engine
from stoker.stacks.templates.prepare import Identity, ResolvedStack, prepare_inner
from stoker.stacks.templates.preview import Change, Kind, changes
from stoker.store import resources, stacks
from stoker.store.tx import Tx


def all_changes(tx: Tx, engine: Engine, stack: Stack, resolved: ResolvedStack) -> Iterator[tuple[Stack, Change]]:
    """
    Yield each change with its stack.

    A nested stack whose parameters depend on other changes is represented by its resource only. Raises a kind of
    Invalid for an invalid nested template.
    """
    look = _NestedPreview(tx, engine, resolved.source.files)
    return look.at(stack, resolved, Environment.parse(resolved.source.environment))


@dataclass(frozen=True, slots=True)
class _NestedPreview:
    tx: Tx
    engine: Engine
    files: Mapping[str, str]

    def at(self, stack: Stack, resolved: ResolvedStack, environment: Environment) -> Iterator[tuple[Stack, Change]]:
        for change in changes(self.tx, self.engine, stack, resolved):
            yield stack, change
            inner = self._inner(change)
            if inner is None:
                continue
            if change.kind is Kind.DELETED:
                yield from self._gone(inner)
            elif change.kind in (Kind.UPDATED, Kind.UNCHANGED) and change.certain:
                below = replace(environment, parameters={}, registry=environment.registry.below(change.name))
                yield from self._within(inner, change, below)

    def _within(self, inner: Stack, change: Change, below: Environment) -> Iterator[tuple[Stack, Change]]:
        identity = Identity(inner.id, inner.name, inner.project_id)
        wanted = NestedSpec(self.files[change.type], change.properties)
        try:
            resolved = prepare_inner(self.engine, wanted, self.files, below, identity, self.engine.budget(self.tx))
        except StokerError as error:
            raise type(error)(f"resources.{change.name}<{change.type}>.{error.message}") from None
        yield from self.at(inner, resolved, below)

    def _gone(self, stack: Stack) -> Iterator[tuple[Stack, Change]]:
        for resource in resources.of_stack(self.tx, stack.id):
            if resource.current:
                change = _gone(resource)
                yield stack, change
                inner = self._inner(change)
                if inner is not None:
                    yield from self._gone(inner)

    def _inner(self, change: Change) -> Stack | None:
        """Return the nested stack of a resource whose template came with the request."""
        there = change.resource.physical_id if change.resource else None
        if not there or not is_template_name(change.type):
            return None
        return stacks.find(self.tx, there)


def _gone(resource: Resource) -> Change:
    return Change(
        kind=Kind.DELETED,
        name=resource.name,
        type=resource.type,
        definition=resource.definition,
        properties=resource.properties,
        resource=resource,
    )
