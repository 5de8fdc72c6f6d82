"""List the software configs of the project."""

import click

from stoker_client.cli._output import Output, emit_list, list_options
from stoker_client.cli._session import Session

COLUMNS = ("id", "name", "group", "creation_time")


@click.command()
@click.option("--all", "derived", is_flag=True, help="Include the copies that deployments run.")
@list_options()
@click.pass_obj
def command(session: Session, output: Output, derived: bool) -> None:
    emit_list(output, session.client.configs.all(derived=derived), COLUMNS)
