"""Nouns: the kinds of objects, with the commands that all kinds have alike, and the confirmation of deletions."""

from __future__ import annotations

import sys
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import click

from stoker_client.cli._options import together
from stoker_client.cli._output import Output, Row, echo, emit_list, emit_one, list_options, output_option
from stoker_client.cli._session import Batch, Session
from stoker_client.errors import BadInput, ClientError

if TYPE_CHECKING:
    from stoker_client.client import Client
    from stoker_client.collection import Collection

yes_option = click.option("-y", "--yes", is_flag=True, help="Do not ask for confirmation.")


@dataclass(frozen=True)
class Noun:
    """A kind of object: its name in texts and in the usage, and its collection."""

    name: str
    collection: Callable[[Client], Collection[Any]]
    metavar: str = ""

    def list(
        self,
        help: str,
        columns: Sequence[str],
        *,
        wide: Sequence[str] = (),
        order: str | None = None,
        cells: Callable[[Row], Row] | None = None,
        options: Sequence[Callable[[Any], Any]] = (),
    ) -> click.Command:
        """
        Return the command that lists all objects. The arguments are those of ``emit_list``.

        ``options`` are filters, with the names that the collection's ``all`` has for them.
        """

        @click.command("list", help=help)
        @together(options)
        @list_options()
        @click.pass_obj
        def command(session: Session, /, output: Output, **filters: Any) -> None:
            limit = None if order else output.first
            objects = self.collection(session.client).all(limit=limit, **filters)
            emit_list(output, objects, columns, wide=wide, order=order, cells=cells)

        return command

    def show(self, help: str, fields: Sequence[str] | None = None) -> click.Command:
        """Return the command that shows one object, or ``fields`` of it."""

        @click.command("show", help=help)
        @click.argument("ref", metavar=self._metavar)
        @output_option
        @click.pass_obj
        def command(session: Session, ref: str, output: Output) -> None:
            emit_one(output, self.collection(session.client).show(ref), fields)

        return command

    def delete(self, help: str) -> click.Command:
        """Return the command that deletes objects."""

        @click.command("delete", help=help)
        @click.argument("refs", nargs=-1, required=True, metavar=f"{self._metavar}...")
        @yes_option
        @click.pass_obj
        def command(session: Session, refs: Sequence[str], yes: bool) -> None:
            delete_each(refs, self.name, self.collection(session.client).delete, yes=yes)

        return command

    def cancel(self, help: str, wait_help: str, wait: Callable[[Session, str], object]) -> click.Command:
        """Return the command that cancels objects. ``wait`` returns when the object with that id has stopped."""

        @click.command("cancel", help=help)
        @click.argument("refs", nargs=-1, required=True, metavar=f"{self._metavar}...")
        @click.option("--force", is_flag=True, help="Do not wait for the agents' confirmation.")
        @click.option("--wait", "waits", is_flag=True, help=wait_help)
        @click.pass_obj
        def command(session: Session, refs: Sequence[str], force: bool, waits: bool) -> None:
            objects: Any = self.collection(session.client)

            def cancel(ref: str) -> str:
                id_: str = objects.cancel(ref, force=force)["id"]
                echo(f"{self.name} {ref} cancelled")
                return id_

            with Batch() as batch:
                cancelled = batch.each(refs, cancel)
                if waits:  # after all cancellations, so that waiting delays none of them
                    batch.each(cancelled, lambda id_: wait(session, id_))

        return command

    @property
    def _metavar(self) -> str:
        return self.metavar or self.name.upper()


def delete_each(refs: Sequence[str], noun: str, delete: Callable[[str], object], *, yes: bool) -> None:
    """Ask for confirmation, unless ``yes``; call ``delete`` for each of ``refs`` and print the deleted objects."""
    confirm_deletion(f"{noun} {', '.join(refs)}", yes=yes)

    def act(ref: str) -> None:
        delete(ref)
        echo(f"{noun} {ref} deleted")

    with Batch() as batch:
        batch.each(refs, act)


def confirm_deletion(what: str, *, yes: bool) -> None:
    """Return if the user confirms the deletion of ``what``, or with ``--yes``. Raises ClientError otherwise."""
    if yes:
        return
    if not sys.stdin.isatty():
        raise BadInput(f"{what} not deleted: standard input is not a terminal; use --yes")
    if not click.confirm(f"Delete {what}?", err=True):
        raise ClientError(f"{what} not deleted")
