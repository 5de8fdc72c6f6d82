"""Show the resources that a template would make, and make nothing."""

from typing import Any

import click

from stoker_client.cli._output import emit_data, emit_list, output_option
from stoker_client.cli._session import Session
from stoker_client.cli._stack_input import StackInput, stack_options


@click.command()
@click.argument("name", default="preview")
@stack_options
@output_option
@click.pass_obj
def command(session: Session, /, *, name: str, wait: bool, form: str, **given: Any) -> None:
    if given["template"] is None:
        raise click.UsageError("--template is missing")
    if wait:
        raise click.UsageError("there is nothing to wait for")
    shown: Any = session.client.stacks.preview(StackInput(**given).body() | {"stack_name": name})
    if form != "table":
        emit_data(form, shown)
        return
    emit_list(form, shown["resources"], ("resource_name", "resource_type", "properties"))
