"""Add entries to the catalog, for the project or, with --public, for every project.

A version of an entry never changes. docs/catalog.md describes the file.
"""

from collections.abc import Sequence

import click

from stoker_client.cli._batch import Batch
from stoker_client.cli._output import Output, emit_list, output_option
from stoker_client.cli._session import Session
from stoker_client.cli._values import read_text

COLUMNS = ("name", "version", "origin", "description")


@click.command()
@click.argument("files", nargs=-1, required=True, metavar="FILE...")
@click.option("--public", is_flag=True, help="Every project may use the entries; only for administrators of the site.")
@output_option
@click.pass_obj
def command(session: Session, files: Sequence[str], public: bool, output: Output) -> None:
    texts = [read_text(file, "FILE") for file in files]
    batch = Batch()
    added = batch.each(texts, lambda text: session.client.catalog.add(text, public=public))
    if added:
        emit_list(output, added, COLUMNS)
    batch.exit()
