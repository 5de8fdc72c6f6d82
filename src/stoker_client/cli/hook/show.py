"""Show a version of a stored hook, or write its content to a file."""

import base64
from pathlib import Path

import click

from stoker_client.cli._output import Output, emit_one, output_option
from stoker_client.cli._session import Session
from stoker_client.cli._versions import versioned_name
from stoker_client.errors import BadInput

FIELDS = ("name", "version", "description", "sha256", "size", "public", "created_by", "creation_time")


@click.command()
@click.argument("hook", type=versioned_name, metavar="NAME/VERSION")
@click.option("--file", type=click.Path(dir_okay=False, path_type=Path), help="Write the hook to this file.")
@output_option
@click.pass_obj
def command(session: Session, hook: tuple[str, int], file: Path | None, output: Output) -> None:
    details = session.client.hooks.show(*hook)
    if file is not None:
        try:
            file.write_bytes(base64.b64decode(details["content"]))
        except OSError as problem:
            raise BadInput(f"cannot write {file} (named by --file): {problem.strerror}") from problem
    emit_one(output, details, FIELDS)
