"""Restore a stack from a snapshot."""

import click

from stoker_client.cli._output import echo
from stoker_client.cli._session import Session


@click.command()
@click.argument("stack")
@click.argument("snapshot")
@click.option("--wait", is_flag=True, help="Show the progress until the operation ends; fail if it fails.")
@click.pass_obj
def command(session: Session, stack: str, snapshot: str, wait: bool) -> None:
    ref = session.client.stacks.canonical(stack)
    operation = session.client.stacks.restore(ref, session.client.stacks.snapshot_id(ref, snapshot))
    if wait:
        # imported here because rich is slow, and only watching needs it
        from stoker_client.cli._stack_wait import wait_for

        wait_for(session.client, operation, "RESTORE_COMPLETE")
    echo(f"stack {stack} {'is restored' if wait else 'is being restored'} to snapshot {snapshot}")
