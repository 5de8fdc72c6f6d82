"""The values of references: of the present resources of a stack, and as far as a template alone tells."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from stoker.hot import ALL_ATTRIBUTES, UNKNOWN, Budget, Values, select
from stoker.hot.words import suggest
from stoker.model.errors import InvalidTemplateReference, StackValidationFailed, StokerError, UserParameterMissing
from stoker.model.stack import Action, Resource
from stoker.resources.base import NoSuchAttribute, ResourceType
from stoker.stacks.engine.session import StackSession
from stoker.store import stacks


def all_attributes(session: StackSession, resource: Resource) -> dict[str, Any]:
    """Return all attributes by name. An unavailable attribute is null."""
    if resource.action in (Action.INIT, Action.DELETE):
        return {}
    kind = session.type_of(resource)
    shown = {}
    for name in kind.attribute_names(session.context, resource):
        try:
            shown[name] = kind.attribute_at(session.context, resource, name, ())
        except (NoSuchAttribute, StokerError):
            shown[name] = None
    return shown


#: Every resource has this attribute: its representation in its own API, null for types without one.
SHOW = "show"


class LiveScope:
    """Evaluates with existing resources. Loads only what functions read. Implements ``hot.Scope``."""

    def __init__(self, session: StackSession) -> None:
        self._session = session
        self.version = session.stack.version
        self.budget = session.engine.budget(session.tx)

    @property
    def names(self) -> Sequence[str]:
        """The names of the current resources, which the session has read."""
        return self._session.resources.names()

    def has(self, name: str) -> bool:
        """Return whether the stack has a resource of this name."""
        return self._session.resources.find(name) is not None

    def parameter(self, name: str) -> Any:
        return self._session.parameters[name]

    def resource_id(self, name: str) -> Any:
        resource = self._session.resources.find(name)
        if resource is None:
            raise InvalidTemplateReference(f'The specified reference "{name}" is incorrect.')
        return self._session.type_of(resource).reference(self._session.context, resource)

    def attribute(self, name: str, attribute: str, path: Sequence[Any] = ()) -> Any:
        resource = self._session.resources.find(name)
        if resource is None or resource.action in (Action.INIT, Action.DELETE):
            return None
        if attribute == ALL_ATTRIBUTES:
            return all_attributes(self._session, resource)
        kind = self._session.type_of(resource)
        try:
            return kind.attribute_at(self._session.context, resource, attribute, tuple(path))
        except NoSuchAttribute:
            if attribute == SHOW:
                return select(kind.show(self._session.context, resource), path)
            raise _incorrect(name, attribute) from None

    def file(self, name: str) -> str:
        return stacks.source(self._session.tx, self._session.stack.root_id).files[name]

    def facade(self, part: str) -> Any:
        resource = self._session.facade
        if resource is None:
            raise StackValidationFailed("resource_facade is for nested templates: this stack is in no other.")
        return resource.metadata if part == "metadata" else resource.definition.get(part)


class StaticScope:
    """Evaluates (``hot.Scope``) before any resource exists: references are UNKNOWN, but their names are checked."""

    def __init__(
        self,
        version: str,
        parameters: Values,
        files: Mapping[str, str],
        types: Mapping[str, ResourceType],
        budget: Budget,
    ) -> None:
        self.version = version
        self.budget = budget
        self._parameters = parameters
        self._files = files
        #: By resource name.
        self._types = types

    def parameter(self, name: str) -> Any:
        try:
            return self._parameters[name]
        except (KeyError, UserParameterMissing):
            return UNKNOWN  # the parser has reported the error

    def resource_id(self, name: str) -> Any:
        return UNKNOWN

    def attribute(self, name: str, attribute: str, path: Sequence[Any] = ()) -> Any:
        kind = self._types.get(name)
        if kind is None:
            return UNKNOWN  # the parser has reported the resource
        inside = kind.is_nested and attribute.startswith("resource.")
        if inside or attribute in (ALL_ATTRIBUTES, SHOW):
            return UNKNOWN
        if kind.attributes is not None and attribute not in kind.attributes:
            hint = suggest(attribute, kind.attributes)
            raise IncorrectAttribute(f"{_incorrect(name, attribute).message} {hint}".rstrip())
        return UNKNOWN

    def file(self, name: str) -> str:
        return self._files[name]

    def facade(self, part: str) -> Any:
        return UNKNOWN


def _incorrect(name: str, attribute: str) -> StackValidationFailed:
    return StackValidationFailed(f"The Referenced Attribute ({name} {attribute}) is incorrect.")


class IncorrectAttribute(StackValidationFailed):
    """The type has no such attribute."""
