"""List the triggers of the project, newest first."""

import click

from stoker_client.cli._output import Output, emit_list, list_options
from stoker_client.cli._session import Session
from stoker_client.references import is_prefix
from stoker_client.triggers import STATUSES

COLUMNS = ("id", "name", "status", "total", "complete", "failed", "changed", "creation_time")
WIDE = ("action", "queued", "running", "cancelled", "unchanged", "requested_by", "end_time")


@click.command()
@click.option("--status", type=click.Choice(STATUSES, case_sensitive=False), help="Only triggers in this state.")
@click.option("--stack", metavar="STACK", help="Only triggers of this stack: name or id.")
@list_options()
@click.pass_obj
def command(session: Session, status: str | None, stack: str | None, output: Output) -> None:
    if stack is not None and is_prefix(stack):
        stack = session.client.stacks.canonical(stack).rpartition("/")[2]
    emit_list(output, session.client.triggers.all(status=status, stack=stack, limit=output.first), COLUMNS, wide=WIDE)
