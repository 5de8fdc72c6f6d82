"""Check a template, and show the parameters it asks for."""

from typing import Any

import click

from stoker_client.cli._output import Output, emit_data, emit_list, list_options
from stoker_client.cli._session import Session
from stoker_client.cli._stack_input import StackInput, stack_options

COLUMNS = ("name", "Type", "Default", "Description")


@click.command()
@stack_options
@list_options()
@click.pass_obj
def command(session: Session, /, *, wait: bool, output: Output, **given: Any) -> None:
    if given["template"] is None:
        raise click.UsageError("--template is missing")
    if wait:
        raise click.UsageError("there is nothing to wait for")
    shown = session.client.templates.validate(StackInput(**given).body())
    if not output.is_data:
        emit_list(output, [{"name": name, **each} for name, each in shown["Parameters"].items()], COLUMNS)
    else:
        emit_data(output.form, shown)
