"""One call of ``stoker``: its options and client, its exit code, and the failures of some of its objects."""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING, Self, TypeVar

import click

from stoker_client.cli._output import echo, printable
from stoker_client.errors import BadInput, ClientError, NotFound, Refused, TimedOut, Unreachable

if TYPE_CHECKING:
    from stoker_client.client import Client

Ref = TypeVar("Ref")
Result = TypeVar("Result")

FAILED, USAGE, DRIFT, NOT_FOUND, REFUSED, UNREACHABLE, TIMED_OUT, INTERRUPTED = 1, 2, 3, 4, 5, 6, 124, 130
#: Statuses of a proxy in front of the service, or of a service that is temporarily unavailable.
_AWAY = (502, 503, 504)

MEANINGS = {
    0: "success",
    FAILED: "the operation failed, or another error",
    USAGE: "the command line or a file is wrong; no request was sent",
    DRIFT: "a check found drift",
    NOT_FOUND: "the object does not exist",
    REFUSED: "the service refused the request or the login",
    UNREACHABLE: "the service cannot be reached",
    TIMED_OUT: "the time to wait is over; the operation may continue",
    INTERRUPTED: "interrupted by Ctrl-C",
}


def exit_code(problem: Exception) -> int:
    """Return the exit code of a command that ends with ``problem``."""
    if isinstance(problem, Refused) and problem.status >= 500:
        return UNREACHABLE if problem.status in _AWAY else FAILED
    return next((code for kind, code in _CODES if isinstance(problem, kind)), FAILED)


_CODES = (
    (BadInput, USAGE),
    (UnicodeEncodeError, USAGE),
    (NotFound, NOT_FOUND),
    (Refused, REFUSED),
    (Unreachable, UNREACHABLE),
    (TimedOut, TIMED_OUT),
)


@dataclass
class Session:
    """The global options, and the client, which is created on first use."""

    cloud: str | None = None
    debug: bool = False

    @cached_property
    def client(self) -> Client:
        """The client. The first access logs in."""
        from stoker_client.client import connect  # imported here because --help must answer at once

        # keystoneauth logs warnings about problems that the client's own errors describe better.
        logging.getLogger("keystoneauth").setLevel(logging.DEBUG if self.debug else logging.CRITICAL)
        client = connect(self.cloud)
        client.wire.on_warning = lambda text: click.echo(f"Warning: {printable(text)}", err=True)
        click.get_current_context().find_root().call_on_close(client.close)
        return client


class Batch:
    """
    Prints failures as they happen, and ends the command with their exit code::

        with Batch() as batch:
            batch.each(names, delete)
    """

    def __init__(self) -> None:
        self._code = 0

    def each(self, refs: Iterable[Ref], act: Callable[[Ref], Result]) -> list[Result]:
        """Call ``act`` for each of ``refs``. Return the results of the successful calls."""
        results: list[Result] = []
        for ref in refs:
            try:
                results.append(act(ref))
            except ClientError as problem:
                echo(f"stoker: {problem}", err=True)
                code = exit_code(problem)
                self._code = code if self._code in (0, code) else FAILED
        return results

    def __enter__(self) -> Self:
        return self

    def __exit__(self, kind: type[BaseException] | None, *_: object) -> None:
        if kind is None and self._code:
            raise click.exceptions.Exit(self._code)
