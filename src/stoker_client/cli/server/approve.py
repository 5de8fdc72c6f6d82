"""Approve servers that wait for it; their agents start at once.

\b
  stoker server approve web1 web2
  stoker server approve --all

Approval by name also lets stacks use a name that the machine chose itself.
"""

from collections.abc import Sequence

import click

from stoker_client.cli._batch import Batch
from stoker_client.cli._output import echo
from stoker_client.cli._pending_servers import all_option, choose_pending
from stoker_client.cli._session import Session


@click.command()
@click.argument("servers", nargs=-1, metavar="[SERVER]...")
@all_option
@click.pass_obj
def command(session: Session, servers: Sequence[str], every: bool) -> None:
    batch = Batch()
    # By id, because approval by name also confirms the name.
    chosen = choose_pending(session, servers, every=every, key="id")
    for name in batch.each(chosen, lambda ref: session.client.servers.approve(ref)["name"]):
        echo(f"server {name} approved")
    batch.exit()
