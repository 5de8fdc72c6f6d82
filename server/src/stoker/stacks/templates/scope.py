"""The values of references, as far as a template alone tells."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from stoker.hot import ALL_ATTRIBUTES, UNKNOWN, Budget, Values
from stoker.hot.words import suggest
from stoker.model.errors import StackValidationFailed, UserParameterMissing
from stoker.resources.base import ResourceType
from stoker.stacks.engine.session import SHOW, describe_incorrect


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
            raise IncorrectAttribute(f"{describe_incorrect(name, attribute).message} {hint}".rstrip())
        return UNKNOWN

    def file(self, name: str) -> str:
        return self._files[name]

    def facade(self, part: str) -> Any:
        return UNKNOWN


class IncorrectAttribute(StackValidationFailed):
    """The type has no such attribute."""
