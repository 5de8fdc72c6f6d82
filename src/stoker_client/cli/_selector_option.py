"""The option that selects servers by labels and facts."""

from collections.abc import Callable
from typing import Any, TypeVar

import click

F = TypeVar("F", bound=Callable[..., Any])


def selector_option(help: str) -> Callable[[F], F]:
    """Return the option ``--label``. The command receives the texts as ``selectors``."""
    return click.option(
        "-l", "--label", "selectors", multiple=True, metavar="SELECTOR",
        help=f"{help} SELECTOR is a label such as role=web, or a condition such as 'role=web and os.family=debian';"
        " repeat to combine conditions.",
    )  # fmt: skip
