"""Add entries to the catalogue, for the project or, with --public, for every project.

A version of an entry never changes. docs/catalog.md describes the file.
"""

from collections.abc import Sequence

import click

from stoker_client.cli._session import Session
from stoker_client.cli._values import read_text


@click.command()
@click.argument("files", nargs=-1, required=True, metavar="FILE...")
@click.option("--public", is_flag=True, help="Every project may use the entries; only for administrators of the site.")
@click.pass_obj
def command(session: Session, files: Sequence[str], public: bool) -> None:
    for file in files:
        entry = session.client.catalog.add(read_text(file, "FILE"), public=public)
        click.echo(f"catalogue entry {entry['name']}/{entry['version']} added")
