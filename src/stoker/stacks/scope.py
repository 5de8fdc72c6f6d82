"""What a template's functions may ask while a stack's values are resolved."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from stoker.hot import ALL_ATTRIBUTES, UNKNOWN, Values, select
from stoker.model.errors import InvalidTemplateReference, StackValidationFailed
from stoker.model.status import Action
from stoker.resources.base import NoSuchAttribute, ResourceType
from stoker.stacks.attributes import all_attributes
from stoker.stacks.transition import Transition
from stoker.store import resources, stacks

#: Every resource has this attribute: the raw thing behind it, null for types that have none.
SHOW = "show"


class LiveScope:
    """Reads the resources as they are. Only what is asked for is loaded."""

    def __init__(self, transition: Transition) -> None:
        self._transition = transition
        self.version = transition.stack.version

    def parameter(self, name: str) -> Any:
        return self._transition.parameters[name]

    def resource_id(self, name: str) -> Any:
        resource = self._transition.resource(name)
        if resource is None:
            raise InvalidTemplateReference(f'The specified reference "{name}" is incorrect.')
        return self._transition.type_of(resource).reference(resource)

    def attribute(self, name: str, attribute: str, path: Sequence[Any] = ()) -> Any:
        resource = self._transition.resource(name)
        if resource is None or resource.action in (Action.INIT, Action.DELETE):
            return None
        if attribute == ALL_ATTRIBUTES:
            return all_attributes(self._transition, resource)
        kind = self._transition.type_of(resource)
        try:
            if kind.attribute_at is not None:
                return kind.attribute_at(self._transition.context, resource, attribute, tuple(path))
            return select(kind.attribute(self._transition.context, resource, attribute), path)
        except NoSuchAttribute:
            if attribute == SHOW:
                return None
            raise _incorrect(name, attribute) from None

    def file(self, name: str) -> str:
        return stacks.source(self._transition.tx, self._transition.stack.root_id).files[name]

    def facade(self, part: str) -> Any:
        id = self._transition.stack.parent_resource_id
        resource = resources.find(self._transition.tx, id) if id else None
        if resource is None:
            raise StackValidationFailed("resource_facade is for nested templates: this stack is in no other.")
        return resource.metadata if part == "metadata" else resource.definition.get(part)


class StaticScope:
    """Before anything exists: parameters and files are known, the rest is UNKNOWN, but names are checked."""

    def __init__(
        self, version: str, parameters: Values, files: Mapping[str, str], types: Mapping[str, ResourceType]
    ) -> None:
        self.version = version
        self._parameters = parameters
        self._files = files
        #: By resource name.
        self._types = types

    def parameter(self, name: str) -> Any:
        return self._parameters[name]

    def resource_id(self, name: str) -> Any:
        if name not in self._types:
            raise InvalidTemplateReference(f'The specified reference "{name}" is incorrect.')
        return UNKNOWN

    def attribute(self, name: str, attribute: str, path: Sequence[Any] = ()) -> Any:
        kind = self._types[name]
        inside = kind.attribute_at is not None and attribute.startswith("resource.")
        if inside or attribute in (ALL_ATTRIBUTES, SHOW):
            return UNKNOWN
        if kind.attributes is not None and attribute not in kind.attributes:
            raise _incorrect(name, attribute)
        return UNKNOWN

    def file(self, name: str) -> str:
        return self._files[name]

    def facade(self, part: str) -> Any:
        return UNKNOWN


def _incorrect(name: str, attribute: str) -> StackValidationFailed:
    return StackValidationFailed(f"The Referenced Attribute ({name} {attribute}) is incorrect.")
