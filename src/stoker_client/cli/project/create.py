"""Create a project."""

import click

from stoker_client.cli._output import Output, emit_one, output_option
from stoker_client.cli._session import Session


@click.command()
@click.argument("name")
@click.option("--description", default="", help="A description.")
@output_option
@click.pass_obj
def command(session: Session, name: str, description: str, output: Output) -> None:
    project = session.client.identity.create_project(name, description)
    emit_one(output, project, ("id", "name", "description", "enabled"))
