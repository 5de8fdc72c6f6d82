"""List deployments whose servers have drifted; --all: the last check of every deployment."""

import click

from stoker_client.checks import DRIFTED, STATES
from stoker_client.cli._drift_views import COLUMNS, WIDE, cells
from stoker_client.cli._output import Output, emit_list, list_options
from stoker_client.cli._session import Session


@click.command()
@click.option("--all", "every", is_flag=True, help="Checks of every state.")
@click.option("--state", type=click.Choice(STATES, case_sensitive=False), help="Checks of this state instead.")
@click.option("--stack", metavar="STACK", help="Only this stack with its nested stacks: name or id.")
@click.option("--server", metavar="SERVER", help="Only this server: name or id.")
@list_options()
@click.pass_obj
def command(
    session: Session, every: bool, state: str | None, stack: str | None, server: str | None, output: Output
) -> None:
    client, wanted = session.client, state or (None if every else DRIFTED)
    checks = client.checks.all(
        state=wanted,
        stack=None if stack is None else client.stacks.show(stack, outputs=False)["id"],
        server=None if server is None else client.servers.show(server)["id"],
        limit=output.first,
    )
    emit_list(output, checks, COLUMNS, wide=WIDE, cells=cells)
