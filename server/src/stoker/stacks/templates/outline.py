"""
What the walks over a template tell: the outline of a checked template, and the changes that an operation would make.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from enum import StrEnum
from functools import cached_property
from typing import Any

from msgspec import Struct, field

from stoker import hot
from stoker.hot import Definition, Template
from stoker.model.stack import Resource, Stack
from stoker.resources.base import Properties, ResourceType
from stoker.stacks.engine.decisions import ResourceChange


class OutlinedResource(Struct, frozen=True, kw_only=True):
    """A checked resource. Values that only a running resource knows are UNKNOWN."""

    type: ResourceType
    #: With the final type and the contents of files.
    definition: Definition
    properties: Properties
    metadata: Any = field(default_factory=dict)
    #: The resources inside the resource; None if the resource is not a stack.
    inside: Outline | None = None


class Outline(Struct, frozen=True, kw_only=True):
    """A checked template: of a request, of a nested stack, or the one that Stoker generates for a group."""

    #: With its conditions decided.
    template: Template
    #: The name of a nested template in places.
    file: str = ""
    #: By name. Of a group, all members or one sample.
    resources: Mapping[str, OutlinedResource] = field(default_factory=dict)
    #: Values of outputs, as far as known before any resource exists.
    outputs: Mapping[str, Any] = field(default_factory=dict)
    #: Errors of outputs that will never have a value, by name.
    output_errors: Mapping[str, str] = field(default_factory=dict)

    def list_all(self) -> Iterator[OutlinedResource]:
        """Yield the resources at any depth."""
        for resource in self.resources.values():
            yield resource
            if resource.inside is not None:
                yield from resource.inside.list_all()


class Kind(StrEnum):
    """The kinds of changes, as Heat's API names them."""

    UNCHANGED = "unchanged"
    UPDATED = "updated"
    REPLACED = "replaced"
    ADDED = "added"
    DELETED = "deleted"


class UnknownValue(Exception):
    """A value is unknown until the operation is applied."""


class Change(Struct, frozen=True, kw_only=True, dict=True, eq=False):
    """The change to one resource."""

    #: What the operation does with the resource; None: it removes the resource.
    change: ResourceChange | None = None
    name: str
    type: str
    definition: Mapping[str, Any]
    #: The new properties, with UNKNOWN in place of unknown parts.
    properties: Mapping[str, Any]
    #: The present resource, if it exists.
    resource: Resource | None
    #: The changes to all resources of the new template, by name.
    others: Mapping[str, Change] = field(default_factory=dict)

    @classmethod
    def deletion(cls, resource: Resource) -> Change:
        """Return the change that removes a resource."""
        return cls(
            name=resource.name,
            type=resource.type,
            definition=resource.definition,
            properties=resource.properties,
            resource=resource,
        )

    @property
    def kind(self) -> Kind:
        """The kind of the change."""
        return Kind.DELETED if self.change is None else _KINDS[self.change]

    @property
    def is_outdated(self) -> bool:
        """Whether an earlier operation has replaced or removed the resource, and has not deleted it."""
        return self.change is None and self.resource is not None and not self.resource.current

    @property
    def is_certain(self) -> bool:
        """Whether all properties are known."""
        return not hot.has_unknown(self.properties)

    @cached_property
    def differing(self) -> Sequence[str]:
        """Names of the properties of an existing resource that differ."""
        before = self.properties if self.resource is None else self.resource.properties
        return sorted(name for name, value in self.properties.items() if before.get(name) != value)

    def explain(self, names: Iterable[str]) -> str | None:
        """Return why the first property that is not known yet is unknown: the results on which it depends; or None."""
        for name in names:
            if hot.has_unknown(self.properties.get(name)):
                places = _references(self.definition["properties"].get(name))
                unapplied = {place for place in places if self._awaits(place.partition(".")[0])}
                what = ", ".join(sorted(unapplied)) or "results of the operation"
                return f"{name} depends on {what}, unknown until applied"
        return None

    def require(self, names: Iterable[str]) -> None:
        """Raise UnknownValue for a property that is not known yet."""
        if reason := self.explain(names):
            raise UnknownValue(reason)

    def _awaits(self, name: str) -> bool:
        return name in self.others and self.others[name].kind is not Kind.UNCHANGED


_KINDS = {
    ResourceChange.CREATE: Kind.ADDED,
    ResourceChange.NOOP: Kind.UNCHANGED,
    ResourceChange.AWAIT: Kind.UNCHANGED,
    ResourceChange.UPDATE: Kind.UPDATED,
    ResourceChange.RETRY: Kind.UPDATED,
    ResourceChange.REPLACE: Kind.REPLACED,
}
_CALLS = ("get_attr", "get_resource")


def _references(written: Any) -> Iterator[str]:
    """Yield ``resource.attribute``, or ``resource``, for each reference in a value of a template."""
    for call in hot.calls(written):
        if call.name in _CALLS:
            names = call.argument if isinstance(call.argument, list) else [call.argument]
            yield ".".join(map(str, names[:2]))


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
