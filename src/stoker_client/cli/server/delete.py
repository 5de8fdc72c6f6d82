"""Delete enrolled servers: their agents are no longer served."""

from collections.abc import Sequence

import click

from stoker_client.cli._each import each, end
from stoker_client.cli._session import Session


@click.command()
@click.argument("servers", nargs=-1, required=True, metavar="SERVER...")
@click.pass_obj
def command(session: Session, servers: Sequence[str]) -> None:
    end(each(servers, session.client.servers.delete))
