"""Show a software config, or only its content."""

import click

from stoker_client.cli._output import Output, emit_one, emit_value, output_option
from stoker_client.cli._session import Session

FIELDS = ("id", "name", "group", "creation_time", "inputs", "outputs", "options", "config")


@click.command()
@click.argument("config")
@click.option("--config-only", is_flag=True, help="Print only its content.")
@output_option
@click.pass_obj
def command(session: Session, config: str, config_only: bool, output: Output) -> None:
    details = session.client.configs.find(config)
    if config_only:
        emit_value(output, details.get("config"))
    else:
        emit_one(output, details, FIELDS)
