"""
Resource types whose resources are nested stacks: template files, groups and others.

A nested stack is a row like any other stack, with the id of its parent. Its operations run in the transaction of its
parent's step, and may end in it. An operation that ends later wakes the parent's resource (see ``engine.progress``).
Locking any stack of a tree locks the root; files and environment belong to the root.
"""

from __future__ import annotations

import hashlib
import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any
from uuid import uuid4

from msgspec.structs import replace

from stoker.hot import Definition, Environment, select
from stoker.model.errors import RequestLimitExceeded, StackValidationFailed, StokerError
from stoker.model.ids import Arn
from stoker.model.stack import Action, Resource, Source, Stack, Status
from stoker.resources.base import (
    DONE,
    Context,
    NestedFailure,
    NoSuchAttribute,
    Outcome,
    Properties,
    Replace,
    ResourceFailure,
    ResourceType,
    name_within,
)
from stoker.resources.roles import HasNestedStack, NestedSpec, describe_missing, takes_place
from stoker.stacks import operations, outputs
from stoker.stacks.engine import Engine
from stoker.stacks.engine.session import LiveScope
from stoker.stacks.operations import Options
from stoker.stacks.templates.prepare import Identity, ResolvedStack, prepare_inner
from stoker.store import resources, rows, stacks
from stoker.types import deployment_runs

#: Output whose value ``get_resource`` returns for the resource of a nested stack.
_REFERENCE = "OS::stack_id"
#: For example ``Resource CREATE failed: Error: resources.x: why``.
_FAILED = re.compile(r"Resource \w+ failed: (?P<kind>\w+): (?P<path>resources\..*)", re.DOTALL)


def find(context: Context, id: str | None) -> Stack | None:
    """Return the project's stack with this id, which may be deleted; None if there is none."""
    stack = stacks.find(context.tx, id) if id else None
    return stack if stack is not None and stack.project_id == context.project_id else None


def find_existing(context: Context, resource: Resource) -> Stack | None:
    """Return the nested stack of a resource; None if there is none, or it is deleted."""
    stack = find(context, resource.physical_id)
    return stack if stack is not None and stack.deleted_at is None else None


def get_failure(stack: Stack) -> tuple[str, str]:
    """Return Heat's path from a nested stack that failed to the resource that failed, and the type of the error."""
    match = _FAILED.fullmatch(stack.reason)
    return (f".{match['path']}", match["kind"]) if match else (f": {stack.reason}", "Error")


def create_stack(context: Context, resource: Resource, spec: NestedSpec) -> str:
    """Create the nested stack; return its id. Raises StokerError for an invalid spec."""
    engine: Engine = context.engine
    parent = context.stack
    deepest = engine.limits.nested_depth
    if parent.depth + 1 >= deepest:
        raise RequestLimitExceeded(f"Recursion depth exceeds {deepest}.")
    identity = Identity(str(uuid4()), name_within(parent.name, resource), parent.project_id)
    resolved = _prepare(context, resource, spec, identity)
    stack = operations.new_stack(
        context.tx,
        resolved,
        Options(timeout_mins=parent.timeout_mins),
        user_project_id=parent.user_project_id,
        username=parent.username,
        root_id=parent.root_id,
        parent_id=parent.id,
        parent_resource_id=resource.id,
        parent_resource=resource.name,
        depth=parent.depth + 1,
        action=Action.CREATE if spec.adopt is None else Action.ADOPT,
    )
    operations.begin(context.tx, engine, stack, resolved, adopt=spec.adopt, facade=resource)
    return stack.id


def update_stack(context: Context, resource: Resource, spec: NestedSpec) -> None:
    """Update the nested stack to ``spec``."""
    stack = stacks.get(context.tx, str(resource.physical_id))
    resolved = _prepare(context, resource, spec, Identity.of(stack))
    operations.update(context.tx, context.engine, resolved, Options(), facade=resource)


def list_resources(context: Context, resource: Resource) -> Sequence[Resource]:
    """Return all resources inside, replaced ones included; empty if there is no nested stack."""
    stack = find(context, resource.physical_id)
    return () if stack is None else resources.of_stack(context.tx, stack.id)


def get_output(context: Context, resource: Resource, name: str, path: tuple[Any, ...]) -> Any:
    """Return an output of the nested stack. Raises NoSuchAttribute."""
    stack = find(context, resource.physical_id)
    if stack is None:
        return None
    if name not in stack.outputs:
        raise NoSuchAttribute(name)
    output = outputs.one_value(context.tx, context.engine, stack, name)
    if "output_error" in output:
        raise StackValidationFailed(f"Error in {resource.name} output {name}: {output['output_error']}")
    return select(output["output_value"], path)


def get_reference(context: Context, resource: Resource) -> Any:
    """Return the output ``OS::stack_id`` or the ARN of the nested stack; the resource's name if there is none."""
    stack = find(context, resource.physical_id)
    if stack is None:
        return resource.name
    if _REFERENCE in stack.outputs:
        output = outputs.one_value(context.tx, context.engine, stack, _REFERENCE)
        if "output_error" not in output:
            return output["output_value"] or resource.name
    return str(Arn(stack.project_id, stack.name, stack.id))


def scope_of(context: Context, resource: Resource) -> LiveScope | None:
    """Return the values of the current resources inside; None if there is no nested stack."""
    stack = find(context, resource.physical_id)
    return None if stack is None else LiveScope(outputs.prime_stack(context.tx, context.engine, stack))


def find_file(context: Context, name: str) -> str:
    """Return the text of a file that was sent with the root stack's template. Raises ResourceFailure."""
    files = _find_root(context).source.files
    if name not in files:
        raise ResourceFailure(describe_missing(name))
    return files[name]


def fingerprint(context: Context) -> str:
    """Return a digest of the files and the environment of the stack tree."""
    return _find_root(context).fingerprint


@dataclass(frozen=True)
class _Root:
    """The source of the root stack."""

    source: Source

    @cached_property
    def fingerprint(self) -> str:
        environment = self.source.environment
        content = [self.source.files, environment.get("parameter_defaults"), environment.get("resource_registry")]
        return hashlib.sha256(rows.dump(content).encode()).hexdigest()[:16]


def _find_root(context: Context) -> _Root:
    # A transaction may create thousands of nested stacks, and each of them needs the root's source.
    return stacks.derive_from_source(context.tx, context.stack.root_id, _Root)


def _prepare(context: Context, resource: Resource, spec: NestedSpec, identity: Identity) -> ResolvedStack:
    engine: Engine = context.engine
    root = _find_root(context).source
    below = Environment.parse(root.environment).below(resource.name)
    try:
        return prepare_inner(engine, spec, root.files, below, identity, engine.budget(context.tx))
    except StokerError as error:
        raise ResourceFailure(error.message) from None


def _acts_at_removal(context: Context, resource: Resource) -> bool:
    return any(
        deployment_runs.find_removal(context, member) is not None
        if member.properties.keys() >= _OF_DEPLOYMENT
        else _acts_at_removal(context, member)
        for member in list_resources(context, resource)
    )


#: Properties that only deployments and groups of deployments have.
_OF_DEPLOYMENT = {"config", "actions", "signal_transport"}
#: The first characters of the attributes of a resource inside.
INSIDE = "resource."
#: Key of the resource's data: the digest of the files and the environment that the nested stack was made from.
MADE_FROM = "made_from"


class NestedType(HasNestedStack, ResourceType):
    """A resource type whose resources are nested stacks."""

    attributes: Mapping[str, str] | None = None
    actions = (Action.SUSPEND, Action.RESUME, Action.CHECK)
    retries = True
    repeats_update = True
    is_nested = True

    def create(self, context: Context, resource: Resource, properties: Properties) -> Outcome:
        """Create the nested stack; retry in place if it exists."""
        if find_existing(context, resource) is not None:
            return self.update(context, resource, properties)  # a failed stack is retried in place
        id = create_stack(context, resource, self.spec(context, resource, properties))
        return began_status(context, id, mark(context, resource.data))

    def adopt(self, context: Context, resource: Resource, properties: Properties) -> Outcome:
        """Create the nested stack from abandoned resources."""
        inner = replace(self.spec(context, resource, properties), adopt=resource.data.get("adopt") or {})
        id = create_stack(context, resource, inner)
        return began_status(context, id, mark(context, {}))

    def update(self, context: Context, resource: Resource, properties: Properties) -> Outcome:
        """Update the nested stack. Raises Replace if it does not exist."""
        if find(context, resource.physical_id) is None:
            raise Replace(resource.name)  # the nested stack was not created, or no longer exists
        update_stack(context, resource, self.spec(context, resource, properties))
        return Outcome(is_complete(context, resource.physical_id), data=mark(context, resource.data))

    def retry(self, context: Context, resource: Resource, properties: Properties) -> Outcome:
        return self.create(context, resource, properties)

    def delete(self, context: Context, resource: Resource) -> Outcome:
        if (stack := find_existing(context, resource)) is None:
            return DONE
        operations.delete(context.tx, context.engine, stack.id, facade=resource)
        return self.check(context, resource)

    def act(self, context: Context, resource: Resource, action: Action) -> Outcome:
        if (stack := find(context, resource.physical_id)) is None:
            return DONE
        operations.run_action(context.tx, context.engine, stack.id, action, facade=resource)
        return self.check(context, resource)

    def check(self, context: Context, resource: Resource) -> Outcome:
        if resource.action is Action.DELETE and find_existing(context, resource) is None:
            return DONE
        return Outcome(is_complete(context, resource.physical_id))

    def cancel(self, context: Context, resource: Resource) -> None:
        stack = find(context, resource.physical_id)
        if stack is not None and stack.status is Status.IN_PROGRESS:
            operations.abort(context.tx, context.engine, stack, resource)

    def exists(self, context: Context, id: str) -> bool:
        return find(context, id) is not None

    def is_stale(self, context: Context, resource: Resource) -> bool:
        """Return whether the tree's files or environment changed since the nested stack's last create or update."""
        return bool(resource.data.get(MADE_FROM) != fingerprint(context))

    def predecessors(self, context: Context, definition: Definition, properties: Properties) -> Iterator[str]:
        """Yield the nested stacks whose place a new one takes and whose removal runs something on servers."""
        for resource in resources.of_stack(context.tx, context.stack_id):
            is_former = takes_place(definition.name, definition.type, properties, resource)
            if is_former and _acts_at_removal(context, resource):
                yield resource.id


class TemplateType(NestedType):
    """
    The type of existing resources of template files: parameters are properties, outputs are attributes.

    Their names were checked when the stack was prepared.
    """

    properties = None

    def spec(self, context: Context, resource: Resource, properties: Properties) -> NestedSpec:
        return NestedSpec(find_file(context, resource.type), properties)

    def attribute_at(self, context: Context, resource: Resource, name: str, path: tuple[Any, ...]) -> Any:
        if name.startswith(INSIDE):
            return inside(context, resource, name, path)
        return get_output(context, resource, name, path)

    def reference(self, context: Context, resource: Resource) -> Any:
        return get_reference(context, resource)


def began_status(context: Context, id: str, data: Mapping[str, Any]) -> Outcome:
    """
    Return the outcome for a new nested stack.

    The stack exists even if its creation failed at once. Raises NestedFailure with the outcome.
    """
    begun = Outcome(done=False, physical_id=id, data=data)
    try:
        return replace(begun, done=is_complete(context, id))
    except ResourceFailure as error:
        error.outcome = begun
        raise


def is_complete(context: Context, id: str | None) -> bool:
    """Return whether the nested stack's operation is complete. Raises NestedFailure."""
    stack = find(context, id)
    if stack is None:
        raise ResourceFailure("the nested stack is gone")
    if stack.status is Status.FAILED:
        raise NestedFailure(*get_failure(stack))
    return stack.status is Status.COMPLETE


def mark(context: Context, data: Mapping[str, Any]) -> dict[str, Any]:
    """Return a resource's data with the present files and environment, which a new or updated nested stack has."""
    return {**data, MADE_FROM: fingerprint(context)}


def inside(context: Context, resource: Resource, name: str, path: tuple[Any, ...]) -> Any:
    """Return the attribute ``resource.NAME`` or ``resource.NAME.ATTRIBUTE``. Raises NoSuchAttribute."""
    scope = scope_of(context, resource)
    if scope is None:
        return None
    member, _, attribute = name.removeprefix(INSIDE).partition(".")
    if not scope.has(member):
        raise NoSuchAttribute(f"{INSIDE}{member}")
    if not attribute:
        if not path:
            return scope.resource_id(member)
        attribute, path = str(path[0]), path[1:]
    return scope.attribute(member, attribute, path)
