"""Create a relay and print its key, which is not shown again.

\b
  stoker relay create site1 --url https://relay.site1.example:8005

The machine of the relay needs the key: `stoker relay install` and `stoker relay run` read it.
"""

import click

from stoker_client.cli._output import Output, emit_one, output_option
from stoker_client.cli._session import Session
from stoker_client.cli._values import read_text


@click.command()
@click.argument("name")
@click.option("--url", required=True, metavar="URL", help="Where the site's agents reach the relay.")
@click.option("--ca-file", metavar="FILE", help="The CA of the relay's certificate, if the machines do not trust it.")
@output_option
@click.pass_obj
def command(session: Session, name: str, url: str, ca_file: str | None, output: Output) -> None:
    ca = None if ca_file is None else read_text(ca_file, "--ca-file")
    emit_one(output, session.client.relays.create(name, url, ca), ("id", "name", "url", "key"))
