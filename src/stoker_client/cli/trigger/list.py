"""List the triggers of the project, newest first."""

import click

from stoker_client.cli._output import emit_list, output_option
from stoker_client.cli._session import Session
from stoker_client.triggers import COLUMNS, STATUSES


@click.command()
@click.option("--status", type=click.Choice(STATUSES, case_sensitive=False), help="Only those that are so.")
@click.option("--stack", metavar="STACK", help="Only those of this stack: name or id.")
@click.option("--limit", type=click.IntRange(min=1), metavar="N", help="The newest N.")
@output_option
@click.pass_obj
def command(session: Session, status: str | None, stack: str | None, limit: int | None, form: str) -> None:
    emit_list(form, session.client.triggers.all(status=status, stack=stack, limit=limit), COLUMNS)
