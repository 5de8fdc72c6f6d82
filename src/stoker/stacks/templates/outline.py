"""The outline of a template: its resources and those nested in them, as far as known before any exists."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from stoker.hot import Definition, Template
from stoker.resources.base import Properties, ResourceType


@dataclass(frozen=True, slots=True, kw_only=True)
class OutlinedResource:
    """A checked resource. Values that only a running resource knows are UNKNOWN."""

    type: ResourceType
    #: With the final type and the contents of files.
    definition: Definition
    properties: Properties
    metadata: Any = field(default_factory=dict)
    #: The resources inside the resource; None if the resource is not a stack.
    inside: InnerOutline | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class InnerOutline:
    """The resources inside a nested stack or group."""

    #: By name. Of a group, all members or one sample.
    resources: Mapping[str, OutlinedResource]
    #: None for a group, whose template Stoker generates.
    template: Template | None = None
