"""Commands for what configs are made of: entries of the catalog, and stored hooks."""

from __future__ import annotations

import base64
from collections.abc import Sequence
from pathlib import Path

import click

from stoker_client.cli._groups import Group
from stoker_client.cli._nouns import Noun
from stoker_client.cli._options import read_text
from stoker_client.cli._output import Output, emit_list, emit_one, emit_value, explaining_write_errors, output_option
from stoker_client.cli._session import Batch, Session

_CATALOG_COLUMNS = ("name", "version", "origin", "description")
_CATALOG_FIELDS = (
    "name",
    "version",
    "description",
    "origin",
    "group",
    "inputs",
    "outputs",
    "options",
    "actions",
    "example",
)
_CATALOG = Noun("catalog entry", lambda client: client.catalog, "NAME/VERSION")
catalog = Group(
    commands=[
        _CATALOG.list(
            "List the entries of the catalog: those that Stoker ships, and those of the site and of the project.",
            _CATALOG_COLUMNS,
            order="name",
        ),
        _CATALOG.delete("Delete entries from the catalog. Stacks that use them keep their copies."),
    ]
)


@catalog.command("add")
@click.argument("files", nargs=-1, required=True, metavar="FILE...")
@click.option("--public", is_flag=True, help="Every project may use the entries; only for administrators of the site.")
@output_option
@click.pass_obj
def add_catalog(session: Session, files: Sequence[str], public: bool, output: Output) -> None:
    """Add entries to the catalog, for the project or, with --public, for every project.

    A version of an entry never changes. docs/catalog.md describes the file.
    """
    texts = [read_text(file, "FILE") for file in files]
    with Batch() as batch:
        added = batch.each(texts, lambda text: session.client.catalog.create({"text": text, "public": public}))
        if added:
            emit_list(output, added, _CATALOG_COLUMNS)


@catalog.command("show")
@click.argument("entry", metavar="NAME/VERSION")
@click.option("--text", is_flag=True, help="Print the entry as it is stored.")
@output_option
@click.pass_obj
def show_catalog(session: Session, entry: str, text: bool, output: Output) -> None:
    """Show an entry of the catalog: its inputs, its outputs, and with --text the entry itself.

    \b
      stoker catalog show nginx/1
      stoker catalog show nginx/1 --text > nginx.yaml
    """
    details = session.client.catalog.show(entry)
    if text:
        emit_value(output, details["text"])
    else:
        emit_one(output, details, _CATALOG_FIELDS)


_HOOK = Noun("hook", lambda client: client.hooks, "NAME/VERSION")
hook = Group(
    commands=[
        _HOOK.list(
            "List the stored hooks that the project may use: its own and those of the site.",
            ("name", "version", "size", "sha256", "public", "created_by", "creation_time"),
            order="name",
        ),
        _HOOK.delete(
            "Delete versions of stored hooks. Later runs of configs that use them fail where no agent has them."
        ),
    ]
)


@hook.command("add")
@click.argument("name", metavar="NAME")
@click.argument("file", type=click.Path(exists=True, dir_okay=False, path_type=Path))
@click.option("--description", default="", metavar="TEXT", help="What the hook is for.")
@click.option("--public", is_flag=True, help="Every project may use the hook; only for administrators of the site.")
@output_option
@click.pass_obj
def add_hook(session: Session, name: str, file: Path, description: str, public: bool, output: Output) -> None:
    """Store a hook: the executable FILE, for configs with the option `hook: NAME`.

    The same name again stores the next version. Configs use the version that is the newest when they are created.
    """
    content = base64.b64encode(file.read_bytes()).decode()
    body = {"name": name, "content": content, "description": description, "public": public}
    emit_one(output, session.client.hooks.create(body), ("name", "version", "sha256", "size", "public"))


@hook.command("show")
@click.argument("hook", metavar="NAME/VERSION")
@click.option("--file", type=click.Path(dir_okay=False, path_type=Path), help="Write the hook to this file.")
@output_option
@click.pass_obj
def show_hook(session: Session, hook: str, file: Path | None, output: Output) -> None:
    """Show a version of a stored hook, or write its content to a file."""
    details = session.client.hooks.show(hook)
    if file is not None:
        with explaining_write_errors(file, "--file"):
            file.write_bytes(base64.b64decode(details["content"]))
    fields = ("name", "version", "description", "sha256", "size", "public", "created_by", "creation_time")
    emit_one(output, details, fields)
