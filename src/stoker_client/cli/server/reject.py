"""Reject servers that wait for approval, and delete them.

\b
  stoker server reject web1 web2
  stoker server reject --all
"""

from collections.abc import Sequence

import click

from stoker_client.cli._batch import delete_each
from stoker_client.cli._confirm import yes_option
from stoker_client.cli._pending_servers import all_option, choose_pending
from stoker_client.cli._session import Session


@click.command()
@click.argument("servers", nargs=-1, metavar="[SERVER]...")
@all_option
@yes_option
@click.pass_obj
def command(session: Session, servers: Sequence[str], every: bool, yes: bool) -> None:
    chosen = choose_pending(session, servers, every=every)
    if chosen:
        delete_each(chosen, "server", session.client.servers.reject, yes=yes)
