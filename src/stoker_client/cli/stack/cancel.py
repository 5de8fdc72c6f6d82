"""Stop a running create or update.

An update is rolled back unless --no-rollback keeps the changes made so far; a create is never rolled back.
"""

import click

from stoker_client.cli._session import Session


@click.command()
@click.argument("stack")
@click.option("--no-rollback", is_flag=True, help="Keep the changes made so far.")
@click.pass_obj
def command(session: Session, stack: str, no_rollback: bool) -> None:
    session.client.stacks.act(stack, "cancel_without_rollback" if no_rollback else "cancel_update")
    click.echo(f"stack {stack}: cancel begun")
