"""The outline of a template: its checked resources and those inside them, before any of them exists."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from msgspec import Struct, field

from stoker.hot import Definition, Template
from stoker.resources.base import Properties, ResourceType


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
