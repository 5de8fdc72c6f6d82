"""Show a resource type: its properties and attributes, or with --template a template to start from."""

import click

from stoker_client.cli._output import Output, emit_data, emit_list, list_options
from stoker_client.cli._session import Session

COLUMNS = ("name", "type", "required", "update_allowed", "default", "description")


@click.command()
@click.argument("name")
@click.option("--template", is_flag=True, help="Print a template with one resource of the type.")
@list_options()
@click.pass_obj
def command(session: Session, name: str, template: bool, output: Output) -> None:
    if template:
        emit_data(output.data_form, session.client.templates.type_template(name))
        return
    details = session.client.templates.type(name)
    if output.is_data:
        emit_data(output.form, details)
        return
    emit_list(output, [{"name": name, **schema} for name, schema in details["properties"].items()], COLUMNS)
