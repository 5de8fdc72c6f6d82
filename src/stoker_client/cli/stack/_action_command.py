"""Factory of the commands that run an action on complete stacks."""

from collections.abc import Sequence

import click

from stoker_client.cli._batch import Batch
from stoker_client.cli._output import echo
from stoker_client.cli._session import Session
from stoker_client.stacks import Operation


def action_command(action: str, ends_as: str) -> click.Command:
    """Return a command that starts ``action`` on stacks and, with --wait, waits until they are ``ends_as``."""

    @click.command()
    @click.argument("stacks", nargs=-1, required=True, metavar="STACK...")
    @click.option("--wait", is_flag=True, help="Show the progress until the operation ends; fail if it fails.")
    @click.pass_obj
    def command(session: Session, stacks: Sequence[str], wait: bool) -> None:
        batch = Batch()

        def start(stack: str) -> Operation:
            operation = session.client.stacks.act(stack, action)
            if not wait:
                echo(f"stack {stack}: {action} begun")
            return operation

        started = batch.each(stacks, start)
        if wait:
            # imported here because rich is slow, and only watching needs it
            from stoker_client.cli._stack_wait import wait_for

            def finish(operation: Operation) -> None:
                wait_for(session.client, operation, f"{ends_as}_COMPLETE")
                echo(f"stack {operation.ref.partition('/')[0]} is {ends_as}_COMPLETE")

            batch.each(started, finish)
        batch.exit()

    return command
