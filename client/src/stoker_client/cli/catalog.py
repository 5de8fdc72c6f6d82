"""The catalog: typed, versioned configs, such as nginx/1."""

from __future__ import annotations

from collections.abc import Sequence

import click

from stoker_client.cli._batch import Batch
from stoker_client.cli._lazy import Group
from stoker_client.cli._nouns import Noun
from stoker_client.cli._output import Output, emit_list, emit_one, emit_value, output_option
from stoker_client.cli._session import Session
from stoker_client.cli._values import read_text

_COLUMNS = ("name", "version", "origin", "description")
_FIELDS = ("name", "version", "description", "origin", "group", "inputs", "outputs", "options", "actions", "example")
_NOUN = Noun("catalog entry", lambda client: client.catalog, "NAME/VERSION")
command = Group(
    commands=[
        _NOUN.list(
            "List the entries of the catalog: those that Stoker ships, and those of the site and of the project.",
            _COLUMNS,
            order="name",
        ),
        _NOUN.delete("Delete entries from the catalog. Stacks that use them keep their copies."),
    ]
)


@command.command("add")
@click.argument("files", nargs=-1, required=True, metavar="FILE...")
@click.option("--public", is_flag=True, help="Every project may use the entries; only for administrators of the site.")
@output_option
@click.pass_obj
def add(session: Session, files: Sequence[str], public: bool, output: Output) -> None:
    """Add entries to the catalog, for the project or, with --public, for every project.

    A version of an entry never changes. docs/catalog.md describes the file.
    """
    texts = [read_text(file, "FILE") for file in files]
    with Batch() as batch:
        added = batch.each(texts, lambda text: session.client.catalog.create({"text": text, "public": public}))
        if added:
            emit_list(output, added, _COLUMNS)


@command.command("show")
@click.argument("entry", metavar="NAME/VERSION")
@click.option("--text", is_flag=True, help="Print the entry as it is stored.")
@output_option
@click.pass_obj
def show(session: Session, entry: str, text: bool, output: Output) -> None:
    """Show an entry of the catalog: its inputs, its outputs, and with --text the entry itself.

    \b
      stoker catalog show nginx/1
      stoker catalog show nginx/1 --text > nginx.yaml
    """
    details = session.client.catalog.show(entry)
    if text:
        emit_value(output, details["text"])
    else:
        emit_one(output, details, _FIELDS)
