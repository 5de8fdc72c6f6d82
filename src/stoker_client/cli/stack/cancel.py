"""Stop a running create or update.

An update is rolled back unless --no-rollback keeps the changes made so far. A create is never rolled back.
"""

import click

from stoker_client.cli._output import echo
from stoker_client.cli._session import Session


@click.command()
@click.argument("stack")
@click.option("--no-rollback", is_flag=True, help="Keep the changes made so far.")
@click.option("--wait", is_flag=True, help="Show the progress until the stack has stopped; fail if its rollback fails.")
@click.pass_obj
def command(session: Session, stack: str, no_rollback: bool, wait: bool) -> None:
    details = session.client.stacks.show(stack, outputs=False)
    ref, action = f"{details['stack_name']}/{details['id']}", details["stack_status"].removesuffix("_IN_PROGRESS")
    is_rolled_back = action == "UPDATE" and not no_rollback
    operation = session.client.stacks.act(ref, "cancel_update" if is_rolled_back else "cancel_without_rollback")
    if not wait:
        echo(f"stack {stack}: cancelling")
        return
    # imported here because rich is slow, and only watching needs it
    from stoker_client.cli._stack_wait import wait_for

    status = "ROLLBACK_COMPLETE" if is_rolled_back else f"{action}_FAILED"
    wait_for(session.client, operation, status)
    echo(f"stack {stack} is {status}")
