"""Show an entry of the catalog: its inputs, its outputs, and with --text the entry itself.

\b
  stoker catalog show nginx/1
  stoker catalog show nginx/1 --text > nginx.yaml
"""

from typing import Any

import click

from stoker_client.cli._output import Output, emit_one, emit_value, output_option
from stoker_client.cli._session import Session
from stoker_client.cli._versions import versioned_name

FIELDS = ("name", "version", "description", "origin", "group", "inputs", "outputs", "options", "actions", "example")


@click.command()
@click.argument("entry", type=versioned_name, metavar="NAME/VERSION")
@click.option("--text", is_flag=True, help="Print the entry as it is stored.")
@output_option
@click.pass_obj
def command(session: Session, entry: tuple[str, int], text: bool, output: Output) -> None:
    details: dict[str, Any] = session.client.catalog.show(*entry)
    if text:
        emit_value(output, details["text"])
    else:
        emit_one(output, details, FIELDS)
