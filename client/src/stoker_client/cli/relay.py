"""Relays: programs at remote sites that serve the site's agents over a few connections to Stoker."""

import click

from stoker_client.cli._lazy import Group
from stoker_client.cli._nouns import Noun
from stoker_client.cli._output import Output, emit_one, output_option
from stoker_client.cli._session import Session
from stoker_client.cli._values import read_text

_NOUN = Noun("relay", lambda client: client.relays)
command = Group(
    commands=[
        _NOUN.list(
            "List the relays of the project.",
            ("name", "url", "last_seen", "version"),
            wide=("id", "created_by", "created_at"),
            order="name",
        ),
        _NOUN.delete("Delete relays and revoke their keys; their agents then need another URL of Stoker."),
    ],
    entry_group="stoker.commands.relay",
    others={"install": "stoker-relay", "run": "stoker-relay"},
)


@command.command()
@click.argument("name")
@click.option("--url", required=True, metavar="URL", help="The URL at which the site's agents reach the relay.")
@click.option("--ca-file", metavar="FILE", help="The CA of the relay's certificate, if the machines do not trust it.")
@output_option
@click.pass_obj
def create(session: Session, name: str, url: str, ca_file: str | None, output: Output) -> None:
    """Create a relay and print its key, which is not shown again.

    \b
      stoker relay create site1 --url https://relay.site1.example:8005

    The machine of the relay needs the key: `stoker relay install` and `stoker relay run` read it.
    """
    ca = None if ca_file is None else read_text(ca_file, "--ca-file")
    relay = session.client.relays.create({"name": name, "url": url, "ca": ca})
    emit_one(output, relay, ("id", "name", "url", "key"))
