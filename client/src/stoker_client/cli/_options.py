"""Options of several commands."""

import re
from collections.abc import Callable, Sequence
from typing import Any, TypeVar

import click

F = TypeVar("F", bound=Callable[..., Any])


def together(options: Sequence[Callable[[Any], Any]]) -> Callable[[F], F]:
    """Return a decorator that adds ``options`` to a command, in this order in its help."""

    def put(command: F) -> F:
        for option in reversed(options):
            command = option(command)
        return command

    return put


def canary_option(help: str) -> Callable[[F], F]:
    """Return a decorator that adds ``--canary``. The command receives a number, a text such as ``10%``, or None."""
    return click.option("--canary", metavar="N|P%", callback=_parse_canary, help=help)


def _parse_canary(_ctx: click.Context, _param: click.Parameter, text: str | None) -> int | str | None:
    if text is None or re.fullmatch(r"(100|[1-9][0-9]?)%", text, re.ASCII):
        return text
    if re.fullmatch(r"[1-9][0-9]{0,8}", text, re.ASCII):
        return int(text)
    raise click.UsageError(f"--canary is a number of servers, or a percentage such as 10%, not {text!r}")


wait_option = click.option("--wait", is_flag=True, help="Show the progress until the operation ends; fail if it fails.")
