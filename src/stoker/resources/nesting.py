"""Resources that are stacks themselves: what the types made of templates share."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from typing import Any

from stoker.model.stack import Resource
from stoker.model.status import Action, Status
from stoker.resources.base import (
    DONE,
    Context,
    InnerFailure,
    NoSuchAttribute,
    Outcome,
    Properties,
    Replace,
    ResourceFailure,
    ResourceType,
)
from stoker.resources.services import Inner

#: How the names of types end that are templates.
TEMPLATE_ENDINGS = (".yaml", ".template")
#: An output of this name stands for the whole nested stack in ``get_resource``.
REFERENCE = "OS::stack_id"

_INSIDE = "resource."


@dataclass(frozen=True, slots=True)
class Nesting:
    """How one type makes its stack: the functions of a ``ResourceType`` follow from it."""

    inner: Callable[[Context, Resource, Properties], Inner]

    def create(self, context: Context, resource: Resource, properties: Properties) -> Outcome:
        known = context.nested.status(context, resource.physical_id)
        if known is not None and not known.deleted:
            return self.update(context, resource, properties)  # it failed, and is tried again in place
        inner = self.inner(context, resource, properties)
        id = context.nested.create(context, resource, inner)
        return how_it_began(context, id, {**resource.data, "made_from": context.nested.fingerprint(context)})

    def adopt(self, context: Context, resource: Resource, properties: Properties) -> Outcome:
        inner = replace(self.inner(context, resource, properties), adopt=resource.data.get("adopt") or {})
        id = context.nested.create(context, resource, inner)
        return how_it_began(context, id, {"made_from": context.nested.fingerprint(context)})

    def update(self, context: Context, resource: Resource, properties: Properties) -> Outcome:
        if context.nested.status(context, resource.physical_id) is None:
            raise Replace(resource.name)  # it never came to be, or is gone
        assert resource.physical_id is not None
        context.nested.update(context, resource, self.inner(context, resource, properties))
        made = _how_it_stands(context, resource.physical_id)
        return Outcome(made, data={**resource.data, "made_from": context.nested.fingerprint(context)})


def how_it_began(context: Context, id: str, data: Mapping[str, Any]) -> Outcome:
    """Of a new nested stack, which is there even if it failed at once. Raises InnerFailure."""
    begun = Outcome(done=False, physical_id=id, data=data)
    try:
        return replace(begun, done=_how_it_stands(context, id))
    except ResourceFailure as error:
        error.outcome = begun
        raise


def _how_it_stands(context: Context, id: str | None) -> bool:
    """Whether its operation is over. Raises InnerFailure."""
    status = context.nested.status(context, id)
    if status is None:
        raise ResourceFailure("the nested stack is gone")
    if status.status is Status.FAILED:
        raise InnerFailure(*status.failure())
    return status.status is Status.COMPLETE


def check(context: Context, resource: Resource) -> Outcome:
    if resource.action is Action.DELETE:
        status = context.nested.status(context, resource.physical_id)
        if status is None or status.deleted:
            return DONE
    return Outcome(_how_it_stands(context, resource.physical_id))


def delete(context: Context, resource: Resource) -> Outcome:
    status = context.nested.status(context, resource.physical_id)
    if status is None or status.deleted:
        return DONE
    context.nested.act(context, resource, Action.DELETE)
    return check(context, resource)


def _visit(action: Action) -> Callable[[Context, Resource], Outcome]:
    def do(context: Context, resource: Resource) -> Outcome:
        if context.nested.status(context, resource.physical_id) is None:
            return DONE
        context.nested.act(context, resource, action)
        return check(context, resource)

    return do


ACTIONS: Mapping[Action, Callable[[Context, Resource], Outcome]] = {
    action: _visit(action) for action in (Action.SUSPEND, Action.RESUME, Action.CHECK)
}


def exists(context: Context, id: str) -> bool:
    return context.nested.status(context, id) is not None


def is_stale(context: Context, resource: Resource) -> bool:
    """Made with files or an environment that the tree no longer has."""
    return bool(resource.data.get("made_from") != context.nested.fingerprint(context))


def cancel(context: Context, resource: Resource) -> None:
    context.nested.cancel(context, resource)


def reference(resource: Resource) -> Any:
    return resource.data.get("reference") or resource.physical_id or resource.name


def inside(context: Context, resource: Resource, name: str, path: tuple[Any, ...]) -> Any:
    """``resource.NAME`` and ``resource.NAME.ATTRIBUTE``. Raises NoSuchAttribute for other names."""
    if not name.startswith(_INSIDE):
        raise NoSuchAttribute(name)
    look = context.nested.look(context, resource)
    if look is None:
        return None
    member, _, attribute = name.removeprefix(_INSIDE).partition(".")
    if not attribute:
        if not path:
            return look.reference(member)
        attribute, path = str(path[0]), path[1:]
    return look.attribute(member, attribute, path)


def _provided(context: Context, resource: Resource, properties: Properties) -> Inner:
    return Inner(context.nested.file(context, resource.type), properties)


def _output(context: Context, resource: Resource, name: str, path: tuple[Any, ...]) -> Any:
    if name.startswith(_INSIDE):
        return inside(context, resource, name, path)
    return context.nested.output(context, resource, name, path)


_PROVIDED = Nesting(_provided)

#: Every template is a type: its parameters are properties, its outputs attributes. Which ones they are is known where
#: a stack is prepared; what is stored is known to fit.
TEMPLATE = ResourceType(
    name="template",
    properties=None,
    attributes=None,
    create=_PROVIDED.create,
    update=_PROVIDED.update,
    adopt=_PROVIDED.adopt,
    exists=exists,
    delete=delete,
    check=check,
    cancel=cancel,
    is_stale=is_stale,
    actions=ACTIONS,
    attribute_at=_output,
    reference=reference,
    retries=True,
    description="A nested stack of a template of one's own.",
)
