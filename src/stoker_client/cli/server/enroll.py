"""Enroll a server: print a command to run on it, which works for one server, once."""

import click

from stoker_client.cli._output import Output, emit_data, output_option
from stoker_client.cli._session import Session


@click.command()
@click.argument("name")
@output_option
@click.pass_obj
def command(session: Session, name: str, output: Output) -> None:
    enrolled = session.client.servers.enroll(name)
    enrollment = enrolled["enrollment"]
    if output.is_data:
        emit_data(output.form, enrolled)
    else:
        click.echo(enrollment["command"])
        click.echo(
            f"Paste this line on {name}. It is good for one machine, until {enrollment['expires_at']}.", err=True
        )
    if warning := enrollment.get("warning"):
        click.secho(f"Warning: {warning}.", err=True, fg="yellow")
