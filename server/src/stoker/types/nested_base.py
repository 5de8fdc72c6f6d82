"""Resource types whose resources are nested stacks: template files, groups and others."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from msgspec.structs import replace

from stoker.hot import Definition
from stoker.model.stack import Resource
from stoker.model.status import Action, Status
from stoker.resources.base import (
    DONE,
    Context,
    NestedFailure,
    Outcome,
    Properties,
    Replace,
    ResourceFailure,
    ResourceType,
)
from stoker.resources.nested import HasNestedStack, NestedSpec, takes_place
from stoker.store import resources
from stoker.types import deployment_runs, nested_stacks
from stoker.types.nested_stacks import NestedView


def _acts_at_removal(context: Context, resource: Resource) -> bool:
    return any(
        deployment_runs.acts_at_removal(context, member)
        if member.properties.keys() >= _OF_DEPLOYMENT
        else _acts_at_removal(context, member)
        for member in nested_stacks.list_resources(context, resource)
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
        if nested_stacks.find_existing(context, resource) is not None:
            return self.update(context, resource, properties)  # a failed stack is retried in place
        id = nested_stacks.create(context, resource, self.spec(context, resource, properties))
        return began_status(context, id, mark(context, resource.data))

    def adopt(self, context: Context, resource: Resource, properties: Properties) -> Outcome:
        """Create the nested stack from abandoned resources."""
        inner = replace(self.spec(context, resource, properties), adopt=resource.data.get("adopt") or {})
        id = nested_stacks.create(context, resource, inner)
        return began_status(context, id, mark(context, {}))

    def update(self, context: Context, resource: Resource, properties: Properties) -> Outcome:
        """Update the nested stack. Raises Replace if it does not exist."""
        if nested_stacks.find(context, resource.physical_id) is None:
            raise Replace(resource.name)  # the nested stack was not created, or no longer exists
        nested_stacks.update(context, resource, self.spec(context, resource, properties))
        return Outcome(is_complete(context, resource.physical_id), data=mark(context, resource.data))

    def retry(self, context: Context, resource: Resource, properties: Properties) -> Outcome:
        return self.create(context, resource, properties)

    def delete(self, context: Context, resource: Resource) -> Outcome:
        if (stack := nested_stacks.find_existing(context, resource)) is None:
            return DONE
        nested_stacks.act(context, resource, stack, Action.DELETE)
        return self.check(context, resource)

    def act(self, context: Context, resource: Resource, action: Action) -> Outcome:
        if (stack := nested_stacks.find(context, resource.physical_id)) is None:
            return DONE
        nested_stacks.act(context, resource, stack, action)
        return self.check(context, resource)

    def check(self, context: Context, resource: Resource) -> Outcome:
        if resource.action is Action.DELETE and nested_stacks.find_existing(context, resource) is None:
            return DONE
        return Outcome(is_complete(context, resource.physical_id))

    def cancel(self, context: Context, resource: Resource) -> None:
        nested_stacks.cancel(context, resource)

    def exists(self, context: Context, id: str) -> bool:
        return nested_stacks.find(context, id) is not None

    def is_stale(self, context: Context, resource: Resource) -> bool:
        """Return whether the tree's files or environment changed since the nested stack's last create or update."""
        return bool(resource.data.get(MADE_FROM) != nested_stacks.fingerprint(context))

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
        return NestedSpec(nested_stacks.find_file(context, resource.type), properties)

    def attribute_at(self, context: Context, resource: Resource, name: str, path: tuple[Any, ...]) -> Any:
        if name.startswith(INSIDE):
            return inside(context, resource, name, path)
        return nested_stacks.get_output(context, resource, name, path)

    def reference(self, context: Context, resource: Resource) -> Any:
        return nested_stacks.get_reference(context, resource)


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
    stack = nested_stacks.find(context, id)
    if stack is None:
        raise ResourceFailure("the nested stack is gone")
    if stack.status is Status.FAILED:
        raise NestedFailure(*nested_stacks.get_failure(stack))
    return stack.status is Status.COMPLETE


def mark(context: Context, data: Mapping[str, Any]) -> dict[str, Any]:
    """Return a resource's data with the present files and environment, which a new or updated nested stack has."""
    return {**data, MADE_FROM: nested_stacks.fingerprint(context)}


def inside(context: Context, resource: Resource, name: str, path: tuple[Any, ...]) -> Any:
    """Return the attribute ``resource.NAME`` or ``resource.NAME.ATTRIBUTE``. Raises NoSuchAttribute."""
    look = nested_stacks.view(context, resource)
    if look is None:
        return None
    member, _, attribute = name.removeprefix(INSIDE).partition(".")
    if not attribute:
        if not path:
            return look.reference(member)
        attribute, path = str(path[0]), path[1:]
    return look.attribute(member, attribute, path)


def attribute_of_each(look: NestedView, members: Sequence[str], path: tuple[Any, ...]) -> Any:
    """Return the attribute that the path names, by member."""
    if not path:
        return None
    wanted, *rest = path
    return {member: look.attribute(member, str(wanted), tuple(rest)) for member in members}
