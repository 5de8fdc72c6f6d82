"""The interface by which templates' custom constraints are checked."""

from __future__ import annotations

from typing import Protocol


class Constraints(Protocol):
    """Checks of values that name objects of a cloud, for one request. Must not be used in a transaction."""

    def find_problem(self, constraint: str, value: str) -> str | None:
        """Return why the value violates a custom constraint such as ``glance.image``; None if it does not."""
        ...

    def warnings(self) -> list[str]:
        """Return warnings about values that could not be checked."""
        ...
