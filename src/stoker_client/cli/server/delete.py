"""Delete enrolled servers; their agents lose access.

\b
  stoker server delete web1 web2
  stoker server delete --label role=web
"""

from collections.abc import Sequence

import click

from stoker_client.cli._batch import delete_each
from stoker_client.cli._chosen_servers import chosen_servers, label_option
from stoker_client.cli._confirm import yes_option
from stoker_client.cli._output import echo
from stoker_client.cli._session import Session


@click.command()
@click.argument("servers", nargs=-1, metavar="[SERVER]...")
@label_option
@yes_option
@click.pass_obj
def command(session: Session, servers: Sequence[str], selectors: Sequence[str], yes: bool) -> None:
    chosen = chosen_servers(session, servers, selectors)
    delete_each(chosen, "server", session.client.servers.delete, yes=yes)
    echo("stoker: agents that still run there are refused from now on; stop them on the machines", err=True)
