"""What evaluating a template may ask of the world around it."""

from __future__ import annotations

from enum import Enum
from typing import Any, Final, Protocol

#: As an attribute's name: all attributes of the resource, as a map.
ALL_ATTRIBUTES = ""


class _Unknown(Enum):
    """One value that survives copying and pickling as itself."""

    UNKNOWN = "known only at run time"

    def __repr__(self) -> str:
        return "UNKNOWN"


#: Stands for what only running resources can tell; lets a template be validated before anything exists.
UNKNOWN: Final = _Unknown.UNKNOWN


class Scope(Protocol):
    """Whoever evaluates provides one; any answer may be ``UNKNOWN``."""

    @property
    def version(self) -> str: ...

    def parameter(self, name: str) -> Any:
        """The value bound to a parameter. Raises UserParameterMissing."""
        ...

    def resource_id(self, name: str) -> Any:
        """What ``get_resource`` gives: the physical id, or what the resource's type makes of it."""
        ...

    def attribute(self, name: str, attribute: str, path: tuple[Any, ...]) -> Any:
        """An attribute, or what lies at ``path`` in it (None when nothing does); see ``ALL_ATTRIBUTES``."""
        ...

    def file(self, name: str) -> str:
        """The text of a file handed in with the template. Raises KeyError."""
        ...

    def facade(self, part: str) -> Any:
        """In a nested template: ``metadata`` and the like of the resource that it is."""
        ...


class Values(Protocol):
    """A value for every parameter."""

    def __getitem__(self, name: str, /) -> Any: ...
