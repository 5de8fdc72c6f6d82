"""Check a template and show its parameters."""

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
def command(session: Session, /, *, wait: bool, output: Output, **options: Any) -> None:
    if options["template"] is None:
        raise click.UsageError("--template is missing")
    if wait:
        raise click.UsageError("there is nothing to wait for")
    result = session.client.templates.validate(StackInput(**options).body())
    if not output.is_data:
        emit_list(output, [{"name": name, **parameter} for name, parameter in result["Parameters"].items()], COLUMNS)
    else:
        emit_data(output.form, result)
