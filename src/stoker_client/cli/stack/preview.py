"""Show the resources that a template would create."""

from typing import Any

import click

from stoker_client.cli._output import Output, emit_data, emit_list, list_options
from stoker_client.cli._plan import flatten_resources
from stoker_client.cli._session import Session
from stoker_client.cli._stack_input import StackInput, stack_options


@click.command()
@click.argument("name", default="preview")
@stack_options
@list_options()
@click.pass_obj
def command(session: Session, /, *, name: str, wait: bool, output: Output, **options: Any) -> None:
    if options["template"] is None:
        raise click.UsageError("--template is missing")
    if wait:
        raise click.UsageError("there is nothing to wait for")
    body = StackInput(**options).body() | {"stack_name": name}
    preview: Any = session.client.stacks.preview(body)[0]
    if output.is_data:
        emit_data(output.form, preview)
        return
    emit_list(
        output,
        list(flatten_resources(preview["resources"])),
        ("stack_name", "resource_name", "resource_type", "properties"),
    )
