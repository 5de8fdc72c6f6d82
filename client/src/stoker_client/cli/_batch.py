"""Commands for several objects: a failure of one does not prevent the others."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterable, Sequence
from typing import Self, TypeVar

import click

from stoker_client.cli._exit_codes import FAILED, exit_code
from stoker_client.cli._output import echo
from stoker_client.errors import BadInput, ClientError

Ref = TypeVar("Ref")
Result = TypeVar("Result")


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


def delete_each(refs: Sequence[str], noun: str, delete: Callable[[str], object], *, yes: bool) -> None:
    """Ask for confirmation, unless ``yes``; call ``delete`` for each of ``refs`` and print the deleted objects."""
    confirm_deletion(f"{noun} {', '.join(refs)}", yes=yes)

    def act(ref: str) -> None:
        delete(ref)
        echo(f"{noun} {ref} deleted")

    with Batch() as batch:
        batch.each(refs, act)


yes_option = click.option("-y", "--yes", is_flag=True, help="Do not ask for confirmation.")


def confirm_deletion(what: str, *, yes: bool) -> None:
    """Return if the user confirms the deletion of ``what``, or with ``--yes``. Raises ClientError otherwise."""
    if yes:
        return
    if not sys.stdin.isatty():
        raise BadInput(f"{what} not deleted: not a terminal: use --yes")
    if not click.confirm(f"Delete {what}?", err=True):
        raise ClientError(f"{what} not deleted")
