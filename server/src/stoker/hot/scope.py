"""
What evaluation works with: a scope, which provides parameters, resources and files, and limits of its cost.

Values share their parts, so a short template can describe terabytes of data or hours of work: a long file or parameter
that is used many times, or nested replacements. The weight of a value is one for each part and each character; weighing
stops at a limit, and happens before anything is expanded. The values of a stack may all be within ``MAX_WEIGHT``, so
each request that checks templates and each transaction that evaluates them has one ``Budget`` for all, which includes
nested stacks and outputs.
"""

from __future__ import annotations

from dataclasses import dataclass
from enum import Enum
from typing import Any, Final, Protocol

from stoker.model.errors import RequestLimitExceeded, StackValidationFailed


@dataclass(frozen=True, slots=True)
class BudgetLimits:
    """The limits of one budget."""

    #: Characters and items of all values, as ``weigh`` counts them.
    weight: int = 12 * 1024 * 1024
    #: One per function call, ten per copy made by ``repeat``.
    steps: int = 1_000_000
    #: Processor time of all YAQL expressions in seconds. Unlike elapsed time, it does not depend on the machine's load.
    yaql_seconds: float = 2.0


#: Steps for a copy made by ``repeat``.
COPY_STEPS = 10


class Budget:
    """Remaining cost of one request or transaction. Not thread-safe. Methods raise RequestLimitExceeded."""

    __slots__ = ("_limits", "_steps", "_weight", "yaql_seconds")

    def __init__(self, limits: BudgetLimits | None = None) -> None:
        self._limits = limits or BudgetLimits()
        self._weight = self._limits.weight
        self._steps = self._limits.steps
        #: Remaining processor time of YAQL expressions.
        self.yaql_seconds = self._limits.yaql_seconds

    def spend(self, *, weight: int = 0, steps: int = 0) -> None:
        """Subtract weight and steps from the remaining cost."""
        self._weight -= weight
        self._steps -= steps
        if self._weight < 0:
            raise RequestLimitExceeded(
                f"all values together would be too large: more than {self._limits.weight} characters and items. "
                "Use fewer or shorter values, or split the stack."
            )
        if self._steps < 0:
            raise RequestLimitExceeded(
                f"evaluation would take too long: more than {self._limits.steps} steps. "
                "Shorten the lists that repeat goes through, or split the stack."
            )

    def spend_yaql(self, seconds: float) -> None:
        """Subtract the processor time of a YAQL expression from the remaining time."""
        self.yaql_seconds -= seconds
        if self.yaql_seconds <= 0:
            raise RequestLimitExceeded(
                f"YAQL expressions take too long: more than {self._limits.yaql_seconds:g} s. Make them simpler."
            )


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


#: Maximum weight of one resource or one output.
MAX_WEIGHT = 4_194_304
#: Maximum depth: more than a template or a signal can have, and well below Python's recursion limit.
MAX_LEVELS = 250


def has_unknown(value: Any) -> bool:
    """Return whether a value is or contains UNKNOWN."""
    return weigh(value)[1]


def weigh(root: Any, limit: int = MAX_WEIGHT) -> tuple[int, bool]:
    """
    Return the weight of a value, and whether it contains UNKNOWN. Raises if it is heavier than ``limit`` or too deep.
    Does not recurse: values of running resources, inserted into each other, can have any depth.
    """
    weight, unknown, levels = 0, False, 0
    level: list[Any] = [root]
    while level:
        below: list[Any] = []
        for value in level:
            kind = type(value)
            if kind is str:
                weight += len(value)
            elif kind is dict:
                weight += len(value) + sum(map(len, value))
                below += value.values()
            elif kind is list:
                weight += len(value)
                below += value
            elif value is UNKNOWN:
                unknown = True
            if weight > limit:
                raise StackValidationFailed(f"the value would be too large: more than {MAX_WEIGHT} characters")
        levels += 1
        if levels > MAX_LEVELS:
            raise StackValidationFailed(f"the value cannot be written as JSON: it has more than {MAX_LEVELS} levels")
        level = below
    return weight, unknown
