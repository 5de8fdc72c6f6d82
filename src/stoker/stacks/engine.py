"""What every operation on stacks needs and ``serve`` joined."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from stoker.deployments.documents import LOG_BYTES
from stoker.resources.base import ResourceType
from stoker.resources.nesting import TEMPLATE, TEMPLATE_ENDINGS
from stoker.resources.services import Nested, Services

#: Kinds of jobs that stacks defer.
DEADLINE = "stack.deadline"
ADVANCE = "stack.advance"


@dataclass(frozen=True, slots=True, kw_only=True)
class Limits:
    """-1: no limit."""

    resources_per_stack: int = -1
    stacks_per_project: int = -1
    deployments_per_project: int = -1
    #: Seconds an operation may take when the request does not say.
    action_timeout: int = 3600
    #: Steps run in one transaction; a larger plan goes on in the next, so that signals get their turn.
    steps_per_transaction: int = 500
    #: Bytes kept of what one run writes to one stream.
    log_bytes: int = LOG_BYTES


@dataclass(frozen=True, slots=True)
class Engine:
    types: Mapping[str, ResourceType]
    services: Services
    #: Given by ``stacks.nested.engine``, which is how engines are made.
    nested: Nested
    limits: Limits = field(default_factory=Limits)

    def find_type(self, name: str) -> ResourceType | None:
        """The type of that name; every template is one too."""
        return self.types.get(name) or (TEMPLATE if name.endswith(TEMPLATE_ENDINGS) else None)

    def type(self, name: str) -> ResourceType:
        """Of a resource that exists."""
        found = self.find_type(name)
        assert found is not None, name
        return found
