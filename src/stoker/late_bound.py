"""A value that exists later than the components that refer to it."""

from __future__ import annotations

from typing import Generic, TypeVar

T = TypeVar("T")


class LateBound(Generic[T]):
    """
    A reference that is bound exactly once, at start-up.

    A lower layer that notifies a higher one is created first, so its callback refers to the higher layer by a
    ``LateBound``. ``name`` identifies the value in errors. ``default`` is the value until ``bind`` is called; None: the
    reference must not be used before.
    """

    __slots__ = ("_bound", "_name", "_value")

    def __init__(self, name: str, default: T | None = None) -> None:
        self._name = name
        self._value = default
        self._bound = False

    def bind(self, value: T) -> None:
        """Set the value. Raises RuntimeError at the second call."""
        if self._bound:
            raise RuntimeError(f"the {self._name} cannot be bound twice")
        self._value, self._bound = value, True

    def get(self) -> T:
        """Return the value. Raises RuntimeError if there is none yet."""
        if self._value is None:
            raise RuntimeError(f"the {self._name} is used before it is bound")
        return self._value
