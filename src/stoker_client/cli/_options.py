"""Options of several commands."""

from collections.abc import Callable, Sequence
from typing import Any, TypeVar

F = TypeVar("F", bound=Callable[..., Any])


def together(options: Sequence[Callable[[Any], Any]]) -> Callable[[F], F]:
    """Return a decorator that adds ``options`` to a command, in this order in its help."""

    def put(command: F) -> F:
        for option in reversed(options):
            command = option(command)
        return command

    return put
