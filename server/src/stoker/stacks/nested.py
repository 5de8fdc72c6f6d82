"""
Nested stacks, for the resources that represent them.

A nested stack is a row like any other stack, with the id of its parent. Its operations run in the transaction of its
parent's step. An operation that ends later wakes the parent's resource (see ``engine.commit``). Locking any stack of a
tree locks the root; files and environment belong to the root.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any
from uuid import uuid4

from msgspec.structs import replace

from stoker.hot import Environment, select
from stoker.model.arn import Arn
from stoker.model.errors import RequestLimitExceeded, StackValidationFailed, StokerError
from stoker.model.stack import Resource, Stack
from stoker.model.status import Action, Status
from stoker.resources import nested_base
from stoker.resources.base import Context, NoSuchAttribute, ResourceFailure, ResourceType, name_within
from stoker.resources.env import NestedSpec, ResourceEnv
from stoker.resources.transport_checks import with_transports
from stoker.stacks import operations, outputs
from stoker.stacks.engine import Engine, Limits
from stoker.stacks.engine.session import StackSession
from stoker.stacks.operations import Options
from stoker.stacks.outputs import prefetch_stack
from stoker.stacks.templates.prepare import Identity, ResolvedStack, prepare_inner
from stoker.stacks.templates.scope import LiveScope
from stoker.store import stacks


def create_engine(types: Mapping[str, ResourceType], env: ResourceEnv, limits: Limits | None = None) -> Engine:
    """Return an engine with support for nested stacks, and with types that check the transports of this site."""
    return Engine(with_transports(types, env.transports), env, NestedStacks, limits or Limits())


#: Output whose value ``get_resource`` returns for the resource of a nested stack.
_REFERENCE = "OS::stack_id"
#: For example ``Resource CREATE failed: Error: resources.x: why``.
_FAILED = re.compile(r"Resource \w+ failed: (?P<kind>\w+): (?P<path>resources\..*)", re.DOTALL)


@dataclass(frozen=True, slots=True)
class _Status:
    """Implements ``resources.env.NestedStatus``."""

    stack: Stack

    @property
    def status(self) -> Status:
        return self.stack.status

    @property
    def deleted(self) -> bool:
        return self.stack.deleted_at is not None

    def failure(self) -> tuple[str, str]:
        match = _FAILED.fullmatch(self.stack.reason)
        return (f".{match['path']}", match["kind"]) if match else (f": {self.stack.reason}", "Error")


class _View:
    """Implements ``resources.env.NestedView``."""

    def __init__(self, session: StackSession) -> None:
        self._session = session
        self._scope = LiveScope(session)

    @property
    def names(self) -> Sequence[str]:
        return self._session.resources.names()

    def reference(self, name: str) -> Any:
        return self._known(name).resource_id(name)

    def attribute(self, name: str, attribute: str, path: tuple[Any, ...]) -> Any:
        return self._known(name).attribute(name, attribute, path)

    def _known(self, name: str) -> LiveScope:
        if self._session.resources.find(name) is None:
            raise NoSuchAttribute(f"resource.{name}")
        return self._scope


class NestedStacks:
    """Implements the protocol ``resources.env.Nested``."""

    def __init__(self, engine: Engine) -> None:
        self._engine = engine

    def create(self, context: Context, resource: Resource, spec: NestedSpec) -> str:
        parent = stacks.get(context.tx, context.stack_id)
        deepest = self._engine.limits.nested_depth
        if parent.depth + 1 >= deepest:
            raise RequestLimitExceeded(f"Recursion depth exceeds {deepest}.")
        id = str(uuid4())
        name = name_within(parent.name, resource)
        stack = operations.new_stack(
            context.tx,
            resolved := self._prepare(context, resource, spec, Identity(id, name, parent.project_id)),
            Options(timeout_mins=parent.timeout_mins),
            stack_id=id,
            name=name,
            project_id=parent.project_id,
            user_project_id=parent.user_project_id,
            username=parent.username,
            root_id=parent.root_id,
            parent_id=parent.id,
            parent_resource_id=resource.id,
            parent_resource=resource.name,
            depth=parent.depth + 1,
            action=Action.CREATE if spec.adopt is None else Action.ADOPT,
        )
        operations.begin(
            context.tx, self._engine, stack, resolved, adopt=spec.adopt, facade=resource, notify_parent=False
        )
        return id

    def update(self, context: Context, resource: Resource, spec: NestedSpec) -> None:
        stack = stacks.get(context.tx, str(resource.physical_id))
        resolved = self._prepare(context, resource, spec, Identity(stack.id, stack.name, stack.project_id))
        operations.update(context.tx, self._engine, stack.id, resolved, Options(), facade=resource, notify_parent=False)

    def act(self, context: Context, resource: Resource, action: Action) -> None:
        id = str(resource.physical_id)
        if action is Action.DELETE:
            operations.delete(context.tx, self._engine, id, notify_parent=False)
        else:
            operations.run_action(context.tx, self._engine, id, action, notify_parent=False)

    def cancel(self, context: Context, resource: Resource) -> None:
        stack = stacks.find(context.tx, resource.physical_id or "")
        if stack is not None and stack.status is Status.IN_PROGRESS:
            operations.abort(context.tx, self._engine, stack)

    def status(self, context: Context, id: str | None) -> _Status | None:
        stack = stacks.find(context.tx, id) if id else None
        return _Status(stack) if stack is not None and stack.project_id == context.project_id else None

    def output(self, context: Context, resource: Resource, name: str, path: tuple[Any, ...]) -> Any:
        stack = _find(context, resource)
        if stack is None:
            return None
        if name not in stack.outputs:
            raise NoSuchAttribute(name)
        output = outputs.one_value(context.tx, self._engine, stack, name)
        if "output_error" in output:
            raise StackValidationFailed(f"Error in {resource.name} output {name}: {output['output_error']}")
        return select(output["output_value"], path)

    def reference(self, context: Context, resource: Resource) -> Any:
        stack = _find(context, resource)
        if stack is None:
            return None
        if _REFERENCE in stack.outputs:
            output = outputs.one_value(context.tx, self._engine, stack, _REFERENCE)
            if "output_error" not in output:
                return output["output_value"]
        return str(Arn(stack.project_id, stack.name, stack.id))

    def view(self, context: Context, resource: Resource) -> _View | None:
        stack = _find(context, resource)
        return None if stack is None else _View(prefetch_stack(context.tx, self._engine, stack))

    def _prepare(self, context: Context, resource: Resource, spec: NestedSpec, identity: Identity) -> ResolvedStack:
        root = nested_base.find_root(context)
        environment = Environment.parse(root.environment)
        below = replace(environment, parameters={}, registry=environment.registry.below(resource.name))
        try:
            return prepare_inner(self._engine, spec, root.files, below, identity, self._engine.budget(context.tx))
        except StokerError as error:
            raise ResourceFailure(error.message) from None


def _find(context: Context, resource: Resource) -> Stack | None:
    return stacks.find(context.tx, resource.physical_id) if resource.physical_id else None
