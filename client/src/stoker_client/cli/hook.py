"""Stored hooks, which agents fetch for the configs that name them."""

from __future__ import annotations

import base64
from pathlib import Path

import click

from stoker_client.cli._lazy import Group
from stoker_client.cli._nouns import Noun
from stoker_client.cli._output import Output, emit_one, output_option
from stoker_client.cli._session import Session
from stoker_client.errors import BadInput

_NOUN = Noun("hook", lambda client: client.hooks, "NAME/VERSION")
command = Group(
    commands=[
        _NOUN.list(
            "List the stored hooks that the project may use: its own and those of the site.",
            ("name", "version", "size", "sha256", "public", "created_by", "creation_time"),
            order="name",
        ),
        _NOUN.delete(
            "Delete versions of stored hooks. Later runs of configs that use them fail where no agent has them."
        ),
    ]
)


@command.command("add")
@click.argument("name", metavar="NAME")
@click.argument("file", type=click.Path(exists=True, dir_okay=False, path_type=Path))
@click.option("--description", default="", metavar="TEXT", help="What the hook is for.")
@click.option("--public", is_flag=True, help="Every project may use the hook; only for administrators of the site.")
@output_option
@click.pass_obj
def add(session: Session, name: str, file: Path, description: str, public: bool, output: Output) -> None:
    """Store a hook: the executable FILE, for configs with the option `hook: NAME`.

    The same name again stores the next version. Configs use the version that is the newest when they are created.
    """
    content = base64.b64encode(file.read_bytes()).decode()
    body = {"name": name, "content": content, "description": description, "public": public}
    emit_one(output, session.client.hooks.create(body), ("name", "version", "sha256", "size", "public"))


@command.command("show")
@click.argument("hook", metavar="NAME/VERSION")
@click.option("--file", type=click.Path(dir_okay=False, path_type=Path), help="Write the hook to this file.")
@output_option
@click.pass_obj
def show(session: Session, hook: str, file: Path | None, output: Output) -> None:
    """Show a version of a stored hook, or write its content to a file."""
    details = session.client.hooks.show(hook)
    if file is not None:
        try:
            file.write_bytes(base64.b64decode(details["content"]))
        except OSError as problem:
            raise BadInput(f"cannot write {file} (named by --file): {problem.strerror}") from problem
    fields = ("name", "version", "description", "sha256", "size", "public", "created_by", "creation_time")
    emit_one(output, details, fields)
