"""The engine: what every operation on stacks needs, as created by the app factory."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from stoker.deployments.documents import LOG_BYTES
from stoker.hot import Budget, BudgetLimits
from stoker.resources import agent_access
from stoker.resources.base import Properties, ResourceEnv, ResourceType
from stoker.resources.roles import is_template_name
from stoker.store.tx import Tx

#: Kinds of the jobs that stacks defer.
DEADLINE = "stack.deadline"
ADVANCE = "stack.advance"
#: Kind of the job that updates a group's members after labels or facts changed; its arguments: ``resource_id``.
REFRESH = "group.refresh"
_BUDGET = "budget"


@dataclass(frozen=True, slots=True, kw_only=True)
class Limits:
    """Limits of a site. -1 means no limit."""

    resources_per_stack: int = -1
    stacks_per_project: int = -1
    #: Depth of nested stacks, including the outermost.
    nested_depth: int = 5
    deployments_per_project: int = -1
    #: Seconds that an operation may take if its request has no timeout.
    action_timeout: int = 3600
    #: Steps in one transaction. A job continues a larger plan, so that signals are processed in between.
    steps_per_transaction: int = 500
    #: Budget for the templates of one request or transaction.
    budget: BudgetLimits = field(default_factory=BudgetLimits)
    #: Bytes kept of each stream of a run.
    log_bytes: int = LOG_BYTES


@dataclass(frozen=True, slots=True)
class Engine:
    """The resource types, environment and limits of a site."""

    types: Mapping[str, ResourceType]
    env: ResourceEnv
    #: The type of existing resources of template files.
    template: ResourceType
    limits: Limits = field(default_factory=Limits)

    def budget(self, tx: Tx | None = None) -> Budget:
        """Return the budget that all stacks of the transaction share, or a new budget if there is no transaction."""
        if tx is None:
            return Budget(self.limits.budget)
        budget: Budget | None = tx.notes.get(_BUDGET)
        return budget if budget is not None else self.renew_budget(tx)

    def renew_budget(self, tx: Tx) -> Budget:
        """Give the transaction a new budget for its remaining work, and return it."""
        tx.notes[_BUDGET] = budget = Budget(self.limits.budget)
        return budget

    def validate(self, kind: ResourceType, properties: Properties) -> None:
        """Raise Invalid for properties that contradict each other, or this site. Values may be UNKNOWN."""
        kind.validate(properties)
        if kind.name in self.types:  # a template's properties have the names of its parameters
            agent_access.validate(self.env, kind, properties)

    def type(self, name: str) -> ResourceType:
        """Return the type of an existing resource."""
        resource_type = self.types.get(name, self.template)
        assert resource_type is not self.template or is_template_name(name), name
        return resource_type
