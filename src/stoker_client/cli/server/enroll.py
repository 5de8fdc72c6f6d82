"""Enroll a server: print the command to run on it, which is good for one server, once."""

import click

from stoker_client.cli._output import emit_data, output_option
from stoker_client.cli._session import Session


@click.command()
@click.argument("name")
@output_option
@click.pass_obj
def command(session: Session, name: str, form: str) -> None:
    enrolled = session.client.servers.enroll(name)
    if form != "table":
        emit_data(form, enrolled)
    else:
        click.echo(enrolled["enrolment"]["command"])
