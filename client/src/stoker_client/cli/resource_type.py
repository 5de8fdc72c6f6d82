"""Resource types: what there is, and their properties."""

from __future__ import annotations

import click

from stoker_client.cli._lazy import Group
from stoker_client.cli._output import Output, emit_data, emit_list, list_options
from stoker_client.cli._session import Session

command = Group()


@command.command("list")
@list_options()
@click.pass_obj
def list_(session: Session, output: Output) -> None:
    """List the resource types."""
    emit_list(output, session.client.templates.types(), ("resource_type", "description"))


@command.command("show")
@click.argument("name")
@click.option("--template", is_flag=True, help="Print a template with one resource of the type.")
@list_options()
@click.pass_obj
def show(session: Session, name: str, template: bool, output: Output) -> None:
    """Show a resource type: its properties and attributes, or with --template a template to start from."""
    if template:
        emit_data(output.data_form, session.client.templates.type_template(name))
        return
    details = session.client.templates.type(name)
    if output.is_data:
        emit_data(output.form, details)
        return
    properties = [{"name": name, **schema} for name, schema in details["properties"].items()]
    emit_list(output, properties, ("name", "type", "required", "update_allowed", "default", "description"))
