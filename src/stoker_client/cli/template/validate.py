"""Check a template, and show the parameters it asks for."""

from typing import Any

import click

from stoker_client.cli._output import emit_data, emit_list, output_option
from stoker_client.cli._session import Session
from stoker_client.cli._stack_input import StackInput, stack_options

COLUMNS = ("name", "Type", "Default", "Description")


@click.command()
@stack_options
@output_option
@click.pass_obj
def command(session: Session, /, *, wait: bool, form: str, **given: Any) -> None:
    if given["template"] is None:
        raise click.UsageError("--template is missing")
    if wait:
        raise click.UsageError("there is nothing to wait for")
    shown = session.client.templates.validate(StackInput(**given).body())
    if form == "table":
        emit_list(form, [{"name": name, **each} for name, each in shown["Parameters"].items()], COLUMNS)
    else:
        emit_data(form, shown)
