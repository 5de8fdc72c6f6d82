"""Resource types whose resources are nested stacks: template files, groups and others; and what such a stack stores."""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from typing import Any, TypeVar

from msgspec.structs import replace

from stoker.catalog.entry import SCHEME
from stoker.hot import Definition
from stoker.model.stack import Resource, Source
from stoker.model.status import Action, Status
from stoker.resources import deployment_runs
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
)
from stoker.resources.env import NestedSpec, NestedView
from stoker.resources.properties import Property
from stoker.store import resources, rows, stacks

T = TypeVar("T")


def find_root(context: Context) -> Source:
    """Return the source of the root stack, which has the files and the environment of the stack tree."""
    return _derive_from_root(context, _itself)


def file(context: Context, name: str) -> str:
    """Return the text of a file that was sent with the root stack's template. Raises ResourceFailure."""
    files = find_root(context).files
    if name not in files:
        raise ResourceFailure(missing(name))
    return files[name]


def missing(name: str) -> str:
    """Return the error for a template that no file of the request provides."""
    return f"the template {name} is not among the files of the stack: send its text in `files` under this name"


def fingerprint(context: Context) -> str:
    """Return a digest of the files and the environment of the stack tree."""
    return _derive_from_root(context, _fingerprint)


def _derive_from_root(context: Context, derive: Callable[[Source], T]) -> T:
    # A transaction may create thousands of nested stacks, and each of them needs the root's source.
    return stacks.derive_from_source(context.tx, stacks.get(context.tx, context.stack_id).root_id, derive)


def _itself(source: Source) -> Source:
    return source


def _fingerprint(root: Source) -> str:
    environment = root.environment
    content = rows.dump([root.files, environment.get("parameter_defaults"), environment.get("resource_registry")])
    return hashlib.sha256(content.encode()).hexdigest()[:16]


def template(context: Context, resource: Resource) -> Mapping[str, Any]:
    """Return the template of the nested stack's last create or update; empty if there is no nested stack."""
    stack = stacks.find(context.tx, resource.physical_id) if resource.physical_id else None
    return {} if stack is None else stacks.source(context.tx, stack.id).template


def members(context: Context, resource: Resource) -> Sequence[Resource]:
    """Return all resources inside, replaced ones included; empty if there is no nested stack."""
    stack = stacks.find(context.tx, resource.physical_id) if resource.physical_id else None
    return () if stack is None else resources.of_stack(context.tx, stack.id)


def takes_place(name: str, type: str, properties: Properties, resource: Resource) -> bool:
    """Return whether a new nested stack takes the place of ``resource``, under its name or under another one."""
    return resource.name == name or (resource.type == type and resource.properties == properties)


def _acts_at_removal(context: Context, resource: Resource) -> bool:
    return any(
        deployment_runs.acts_at_removal(context, member)
        if member.properties.keys() >= _OF_DEPLOYMENT
        else _acts_at_removal(context, member)
        for member in members(context, resource)
    )


#: Properties that only deployments and groups of deployments have.
_OF_DEPLOYMENT = {"config", "actions", "signal_transport"}
#: Suffixes of type names that denote a template file.
TEMPLATE_ENDINGS = (".yaml", ".template")
_INSIDE = "resource."


def is_template_name(type_name: str) -> bool:
    """Return whether a type is a template: a file, or an entry of the catalog."""
    return type_name.endswith(TEMPLATE_ENDINGS) or type_name.startswith(SCHEME)


class NestedType(ResourceType):
    """A resource type whose resources are nested stacks."""

    attributes: Mapping[str, str] | None = None
    actions = (Action.SUSPEND, Action.RESUME, Action.CHECK)
    retries = True
    repeats_update = True
    is_nested = True
    #: Whether previews show the changes of the resources inside, by ``spec``.
    has_foreseeable_members = False

    def spec(self, context: Context, resource: Resource, properties: Properties) -> NestedSpec:
        """Return the desired state of the nested stack; of a group, after its roll-out."""
        raise NotImplementedError

    def members(self, properties: Properties) -> Iterable[tuple[str, str, Properties]]:
        """
        Return (name, type, properties) of the members that a resource with these properties creates, for validation.

        One representative of equal members is enough. None for a stack of a template.
        """
        return ()

    def every_member(self, properties: Properties) -> Iterable[tuple[str, str, Properties]]:
        """Return all members as ``members`` does, for a preview."""
        return self.members(properties)

    def template_file(self, properties: Properties) -> tuple[str, str, Any] | None:
        """
        Return, if a property names the template: the property, the name of the template's file, and its parameters.

        The parameters are a map, None or UNKNOWN.
        """
        return None

    def create(self, context: Context, resource: Resource, properties: Properties) -> Outcome:
        """Create the nested stack; retry in place if it exists."""
        nested_status = context.nested.status(context, resource.physical_id)
        if nested_status is not None and not nested_status.deleted:
            return self.update(context, resource, properties)  # a failed stack is retried in place
        inner = self.spec(context, resource, properties)
        id = context.nested.create(context, resource, inner)
        return began_status(context, id, {**resource.data, "made_from": fingerprint(context)})

    def adopt(self, context: Context, resource: Resource, properties: Properties) -> Outcome:
        """Create the nested stack from abandoned resources."""
        inner = replace(self.spec(context, resource, properties), adopt=resource.data.get("adopt") or {})
        id = context.nested.create(context, resource, inner)
        return began_status(context, id, {"made_from": fingerprint(context)})

    def update(self, context: Context, resource: Resource, properties: Properties) -> Outcome:
        """Update the nested stack. Raises Replace if it does not exist."""
        if context.nested.status(context, resource.physical_id) is None:
            raise Replace(resource.name)  # the nested stack was not created, or no longer exists
        assert resource.physical_id is not None
        context.nested.update(context, resource, self.spec(context, resource, properties))
        done = _current_status(context, resource.physical_id)
        return Outcome(done, data={**resource.data, "made_from": fingerprint(context)})

    def retry(self, context: Context, resource: Resource, properties: Properties) -> Outcome:
        return self.create(context, resource, properties)

    def delete(self, context: Context, resource: Resource) -> Outcome:
        status = context.nested.status(context, resource.physical_id)
        if status is None or status.deleted:
            return DONE
        context.nested.act(context, resource, Action.DELETE)
        return _check(context, resource)

    def act(self, context: Context, resource: Resource, action: Action) -> Outcome:
        if context.nested.status(context, resource.physical_id) is None:
            return DONE
        context.nested.act(context, resource, action)
        return _check(context, resource)

    def check(self, context: Context, resource: Resource) -> Outcome:
        return _check(context, resource)

    def cancel(self, context: Context, resource: Resource) -> None:
        context.nested.cancel(context, resource)

    def exists(self, context: Context, id: str) -> bool:
        return context.nested.status(context, id) is not None

    def is_stale(self, context: Context, resource: Resource) -> bool:
        """Return whether the tree's files or environment changed since the nested stack's last create or update."""
        return bool(resource.data.get("made_from") != fingerprint(context))

    def predecessors(self, context: Context, definition: Definition, properties: Properties) -> Iterator[str]:
        """Yield the nested stacks whose place a new one takes and whose removal runs something on servers."""
        for resource in resources.of_stack(context.tx, context.stack_id):
            is_former = takes_place(definition.name, definition.type, properties, resource)
            if is_former and _acts_at_removal(context, resource):
                yield resource.id


class TemplateType(NestedType):
    """
    The type of a template file: parameters are properties, outputs are attributes.

    Both are None for existing resources, whose names were checked when their stack was prepared.
    """

    description = "A nested stack of a template of one's own."

    def __init__(
        self,
        name: str = "template",
        properties: Mapping[str, Property] | None = None,
        attributes: Mapping[str, str] | None = None,
    ) -> None:
        self.name = name
        self.properties = properties
        self.attributes = attributes

    def spec(self, context: Context, resource: Resource, properties: Properties) -> NestedSpec:
        return NestedSpec(file(context, resource.type), properties)

    def attribute_at(self, context: Context, resource: Resource, name: str, path: tuple[Any, ...]) -> Any:
        if name.startswith(_INSIDE):
            return inside(context, resource, name, path)
        return context.nested.output(context, resource, name, path)

    def reference(self, context: Context, resource: Resource) -> Any:
        return reference(context, resource)


#: The type of all existing resources of template files.
TEMPLATE = TemplateType()


def began_status(context: Context, id: str, data: Mapping[str, Any]) -> Outcome:
    """
    Return the outcome for a new nested stack.

    The stack exists even if its creation failed at once. Raises NestedFailure with the outcome.
    """
    begun = Outcome(done=False, physical_id=id, data=data)
    try:
        return replace(begun, done=_current_status(context, id))
    except ResourceFailure as error:
        error.outcome = begun
        raise


def _current_status(context: Context, id: str | None) -> bool:
    """Return whether the nested stack's operation is complete. Raises NestedFailure."""
    status = context.nested.status(context, id)
    if status is None:
        raise ResourceFailure("the nested stack is gone")
    if status.status is Status.FAILED:
        raise NestedFailure(*status.failure())
    return status.status is Status.COMPLETE


def _check(context: Context, resource: Resource) -> Outcome:
    if resource.action is Action.DELETE:
        status = context.nested.status(context, resource.physical_id)
        if status is None or status.deleted:
            return DONE
    return Outcome(_current_status(context, resource.physical_id))


def reference(context: Context, resource: Resource) -> Any:
    """Return the output ``OS::stack_id`` or the ARN of the nested stack; the resource's name if there is none."""
    return context.nested.reference(context, resource) or resource.name


def inside(context: Context, resource: Resource, name: str, path: tuple[Any, ...]) -> Any:
    """Return the attribute ``resource.NAME`` or ``resource.NAME.ATTRIBUTE``. Raises NoSuchAttribute for other names."""
    if not name.startswith(_INSIDE):
        raise NoSuchAttribute(name)
    look = context.nested.view(context, resource)
    if look is None:
        return None
    member, _, attribute = name.removeprefix(_INSIDE).partition(".")
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
