"""Lead a stack back to what it was."""

import click

from stoker_client.cli._session import Session


@click.command()
@click.argument("stack")
@click.argument("snapshot")
@click.option("--wait", is_flag=True, help="Watch until it is done; fail if it fails.")
@click.pass_obj
def command(session: Session, stack: str, snapshot: str, wait: bool) -> None:
    ref = session.client.stacks.canonical(stack)
    session.client.stacks.restore(ref, snapshot)
    if wait:
        from stoker_client.cli._waiting import wait_for  # rich: only for those who watch

        wait_for(session.client, ref, "RESTORE")
