"""Options of several commands, the values in them, and the choice of servers."""

from __future__ import annotations

import re
import sys
from collections.abc import Callable, Mapping, Sequence
from datetime import timedelta
from pathlib import Path
from typing import Any, TypeVar

import click

from stoker_client.cli._output import echo
from stoker_client.cli._session import Session
from stoker_client.collection import is_pattern
from stoker_client.errors import BadInput
from stoker_client.servers import join_selectors
from stoker_client.shapes import Server

F = TypeVar("F", bound=Callable[..., Any])


def together(options: Sequence[Callable[[Any], Any]]) -> Callable[[F], F]:
    """Return a decorator that adds ``options`` to a command, in this order in its help."""

    def put(command: F) -> F:
        for option in reversed(options):
            command = option(command)
        return command

    return put


def _parse_canary(_ctx: click.Context, _param: click.Parameter, text: str | None) -> int | str | None:
    if text is None or re.fullmatch(r"(100|[1-9][0-9]?)%", text, re.ASCII):
        return text
    if re.fullmatch(r"[1-9][0-9]{0,8}", text, re.ASCII):
        return int(text)
    raise click.UsageError(f"--canary is a number of servers, or a percentage such as 10%, not {text!r}")


#: How many servers a trigger runs on at a time. The command receives the members of the request.
rollout_options = together([
    click.option("--max-concurrent", type=click.IntRange(min=1), metavar="N", help="At most N servers at a time."),
    click.option(
        "--max-fail-percentage", type=click.IntRange(0, 100), metavar="P",
        help="Start on no more servers when more than this share of all has failed.",
    ),
    click.option(
        "--canary", metavar="N|P%", callback=_parse_canary,
        help="Begin on this number, or percentage, of the servers; on the others when these have succeeded.",
    ),
])  # fmt: skip

link_option = click.option("--link", is_flag=True, help="Print the URL of the console's page, on standard error.")
contains_option = click.option("--contains", metavar="TEXT", help="Only those with this text in their names.")
wait_option = click.option("--wait", is_flag=True, help="Show the progress until the operation ends; fail if it fails.")


def status_option(help: str, *statuses: str) -> Callable[[F], F]:
    """Return the option ``--status``, which accepts ``statuses`` in any case."""
    return click.option("--status", type=click.Choice(statuses, case_sensitive=False), help=help)


def pair(text: str) -> tuple[str, str]:
    """Parse ``NAME=VALUE``. A click type."""
    name, equals, content = text.partition("=")
    if not equals or not name:
        raise click.BadParameter(f"{text!r} is not NAME=VALUE")
    return name, content


def read_text(path: str, what: str) -> str:
    """Return the text of a file; ``-`` is standard input. ``what`` names the option in errors."""
    try:
        raw = sys.stdin.buffer.read() if path == "-" else Path(path).read_bytes()
    except OSError as problem:
        raise BadInput(f"cannot read {path} (named by {what}): {problem.strerror}") from problem
    try:
        return raw.decode()
    except UnicodeDecodeError as problem:
        raise BadInput(f"{path} (named by {what}) is not UTF-8 text: byte {problem.start} is invalid") from problem


def merge(pairs: Sequence[tuple[str, str]], files: Sequence[tuple[str, str]], what: str) -> dict[str, str]:
    """Merge values from arguments and from files. Arguments take precedence."""
    return {name: read_text(path, what) for name, path in files} | dict(pairs)


def given_options(options: Mapping[str, Any]) -> dict[str, Any]:
    """Return the options that the user set."""
    return {name: value for name, value in options.items() if value is not None}


def one_of(*options: bool) -> bool:
    """Whether exactly one of several alternatives is used."""
    return sum(options) == 1


_UNITS = {"s": "seconds", "m": "minutes", "h": "hours", "d": "days"}


def parse_duration(text: str) -> timedelta | None:
    """Return the duration, or None if the text is none."""
    match = re.fullmatch(r"(\d{1,9})([smhd])", text)
    return timedelta(**{_UNITS[match[2]]: int(match[1])}) if match else None


def duration(text: str) -> timedelta:
    """Parse a duration. A click type."""
    parsed = parse_duration(text)
    if parsed is None:
        raise click.BadParameter(f"{text!r} is not a duration such as 90s, 10m, 2h or 7d")
    return parsed


def print_link(session: Session, *path: str) -> None:
    """Print the URL of a page of the console, on standard error: standard output is for data."""
    echo(session.client.console_url(*path), err=True)


def selector_option(help: str) -> Callable[[F], F]:
    """Return the option ``--label``. The command receives the selector for all conditions, or None, as ``selector``."""
    return click.option(
        "-l", "--label", "selector", multiple=True, metavar="SELECTOR",
        callback=lambda _ctx, _param, texts: join_selectors(texts),
        help=f"{help} SELECTOR is a label such as role=web, or a condition such as 'role=web and os.family=debian';"
        " repeat to combine conditions.",
    )  # fmt: skip


label_option = selector_option("All servers that SELECTOR selects.")


def choose_servers(session: Session, refs: Sequence[str], selector: str | None) -> list[Server]:
    """
    Return the servers of ``refs``, or those that ``selector`` selects.

    Raises UsageError for both or neither, and BadInput if there is no server.
    """
    if bool(refs) == bool(selector):
        raise click.UsageError("give either servers or --label")
    if refs:
        return session.client.servers.find(refs)
    servers = session.client.servers.all(selector=selector)
    if not servers:
        raise BadInput(
            f"no server matches {selector}; `stoker server list` shows the labels, `stoker server show` the facts"
        )
    return servers


def chosen_servers(session: Session, refs: Sequence[str], selector: str | None) -> Sequence[str]:
    """Return ``refs``, or the names of the servers that patterns or ``selector`` select; errors: ``choose_servers``."""
    if refs and not selector and not any(map(is_pattern, refs)):
        return refs
    return [server["name"] for server in choose_servers(session, refs, selector)]
