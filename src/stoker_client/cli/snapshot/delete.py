"""Delete a snapshot."""

import click

from stoker_client.cli._session import Session


@click.command()
@click.argument("stack")
@click.argument("snapshot")
@click.pass_obj
def command(session: Session, stack: str, snapshot: str) -> None:
    session.client.stacks.delete_snapshot(stack, snapshot)
