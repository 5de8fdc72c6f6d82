"""Delete a stack and keep its resources.

Prints the data that `stack adopt` needs; --output-file writes the data to a file.
"""

import json
from pathlib import Path

import click

from stoker_client.cli._output import echo
from stoker_client.cli._session import Session
from stoker_client.terminal import escape_controls


@click.command()
@click.argument("stack")
@click.option(
    "--output-file", type=click.Path(dir_okay=False, path_type=Path), metavar="FILE", help="A file for the data."
)
@click.pass_obj
def command(session: Session, stack: str, output_file: Path | None) -> None:
    if output_file is not None:
        output_file.touch(mode=0o600)  # fail before the stack is abandoned if the file cannot be written
    text = json.dumps(session.client.stacks.abandon(stack), indent=2, ensure_ascii=False)
    if output_file is None:
        echo(escape_controls(text))
    else:
        output_file.write_text(text + "\n")
