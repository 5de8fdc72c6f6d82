"""Stop a running create or update.

An update is undone, unless --no-rollback leaves the stack as far as it came; a create can only be left.
"""

import click

from stoker_client.cli._session import Session


@click.command()
@click.argument("stack")
@click.option("--no-rollback", is_flag=True, help="Leave what was done.")
@click.pass_obj
def command(session: Session, stack: str, no_rollback: bool) -> None:
    session.client.stacks.act(stack, "cancel_without_rollback" if no_rollback else "cancel_update")
    click.echo(f"stack {stack}: cancel begun")
