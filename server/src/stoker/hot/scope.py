"""The interface between evaluation and its environment: parameters, resources and files."""

from __future__ import annotations

from enum import Enum
from typing import Any, Final, Protocol

from stoker.hot.budget import Budget

#: The name that stands for all attributes of a resource, as a map.
ALL_ATTRIBUTES = ""


class _Unknown(Enum):
    """An enum member keeps its identity when copied or pickled."""

    UNKNOWN = "known only at run time"

    def __repr__(self) -> str:
        return "UNKNOWN"


#: A value that only a running resource can provide; permits validation before any resource exists.
UNKNOWN: Final = _Unknown.UNKNOWN


class Scope(Protocol):
    """Provides values for evaluation; the caller implements it. Any method may return ``UNKNOWN``."""

    @property
    def version(self) -> str: ...

    @property
    def budget(self) -> Budget:
        """The remaining cost, shared by all evaluations of one request or transaction."""
        ...

    def parameter(self, name: str) -> Any:
        """The value of a parameter. Raises UserParameterMissing."""
        ...

    def resource_id(self, name: str) -> Any:
        """The result of ``get_resource``: the physical id, or a value that the resource's type defines."""
        ...

    def attribute(self, name: str, attribute: str, path: tuple[Any, ...]) -> Any:
        """An attribute, or its part at ``path`` (None if the path does not exist); see ``ALL_ATTRIBUTES``."""
        ...

    def file(self, name: str) -> str:
        """The text of a file supplied with the template. Raises KeyError."""
        ...

    def facade(self, part: str) -> Any:
        """In a nested template, ``metadata`` and other parts of the resource that the nested stack implements."""
        ...


class Values(Protocol):
    """A value for each parameter."""

    def __getitem__(self, name: str, /) -> Any: ...
