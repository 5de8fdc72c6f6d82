"""Delete stacks and all of their resources."""

from collections.abc import Sequence

import click

from stoker_client.cli._batch import Batch
from stoker_client.cli._confirm import confirm_deletion, yes_option
from stoker_client.cli._output import echo
from stoker_client.cli._session import Session
from stoker_client.stacks import Operation


@click.command()
@click.argument("stacks", nargs=-1, required=True, metavar="STACK...")
@yes_option
@click.option("--wait", is_flag=True, help="Show the progress until the stacks are deleted; fail if a deletion fails.")
@click.pass_obj
def command(session: Session, stacks: Sequence[str], yes: bool, wait: bool) -> None:
    confirm_deletion(f"stack {', '.join(stacks)}", yes=yes)
    client, batch = session.client, Batch()

    def start(stack: str) -> Operation:
        operation = client.stacks.delete(client.stacks.canonical(stack))
        if not wait:
            echo(f"stack {stack} is being deleted")
        return operation

    started = batch.each(stacks, start)
    if wait:
        # imported here because rich is slow, and only watching needs it
        from stoker_client.cli._stack_wait import wait_deleted

        def finish(operation: Operation) -> None:
            wait_deleted(client, operation)
            echo(f"stack {operation.ref.partition('/')[0]} deleted")

        batch.each(started, finish)
    batch.exit()
