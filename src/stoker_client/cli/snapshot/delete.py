"""Delete a snapshot."""

import click

from stoker_client.cli._confirm import confirm_deletion, yes_option
from stoker_client.cli._output import echo
from stoker_client.cli._session import Session


@click.command()
@click.argument("stack")
@click.argument("snapshot")
@yes_option
@click.pass_obj
def command(session: Session, stack: str, snapshot: str, yes: bool) -> None:
    confirm_deletion(f"snapshot {snapshot} of {stack}", yes=yes)
    stacks = session.client.stacks
    ref = stacks.canonical(stack)
    stacks.delete_snapshot(ref, stacks.snapshot_id(ref, snapshot))
    echo(f"snapshot {snapshot} deleted")
