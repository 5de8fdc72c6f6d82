"""What an update would do inside of the stacks that a stack's resources are, as far as that can be told."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace

from stoker.hot import Environment
from stoker.model.errors import StokerError
from stoker.model.stack import Resource, Stack
from stoker.resources.nesting import TEMPLATE_ENDINGS
from stoker.resources.services import Inner
from stoker.stacks.engine import Engine
from stoker.stacks.prepare import Identity, Prepared, prepare_inner
from stoker.stacks.preview import Change, Kind, changes
from stoker.store import resources, stacks
from stoker.store.tx import Tx


def all_changes(tx: Tx, engine: Engine, stack: Stack, prepared: Prepared) -> Iterator[tuple[Stack, Change]]:
    """
    Each change with the stack that it is in. A nested stack whose parameters are known only once others have changed
    is left at its resource. Raises a kind of Invalid for a template inside that cannot be.
    """
    look = _Look(tx, engine, prepared.source.files)
    return look.at(stack, prepared, Environment.parse(prepared.source.environment))


@dataclass(frozen=True, slots=True)
class _Look:
    tx: Tx
    engine: Engine
    files: Mapping[str, str]

    def at(self, stack: Stack, prepared: Prepared, environment: Environment) -> Iterator[tuple[Stack, Change]]:
        for change in changes(self.tx, self.engine, stack, prepared):
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
        wanted = Inner(self.files[change.type], change.properties)
        try:
            prepared = prepare_inner(self.engine, wanted, self.files, below, identity)
        except StokerError as error:
            raise type(error)(f"resources.{change.name}<{change.type}>.{error.message}") from None
        yield from self.at(inner, prepared, below)

    def _gone(self, stack: Stack) -> Iterator[tuple[Stack, Change]]:
        for each in resources.of_stack(self.tx, stack.id):
            if each.current:
                change = _gone(each)
                yield stack, change
                inner = self._inner(change)
                if inner is not None:
                    yield from self._gone(inner)

    def _inner(self, change: Change) -> Stack | None:
        """The stack that the resource is, of a template that came with the request."""
        there = change.resource.physical_id if change.resource else None
        if not there or not change.type.endswith(TEMPLATE_ENDINGS):
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
