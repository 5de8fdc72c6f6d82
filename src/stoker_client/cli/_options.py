"""Options that several commands share."""

from collections.abc import Callable, Sequence
from typing import Any, TypeVar

F = TypeVar("F", bound=Callable[..., Any])


def together(options: Sequence[Callable[[Any], Any]]) -> Callable[[F], F]:
    """One decorator that puts all ``options`` on a command; its help has them in this order."""

    def put(command: F) -> F:
        for option in reversed(options):
            command = option(command)
        return command

    return put
