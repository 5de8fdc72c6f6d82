"""Show a resource type: its properties and attributes, or with --template a template to start from."""

import click

from stoker_client.cli._output import emit_data, emit_list, output_option
from stoker_client.cli._session import Session

COLUMNS = ("name", "type", "required", "update_allowed", "default", "description")


@click.command()
@click.argument("name")
@click.option("--template", is_flag=True, help="Print a template with one resource of the type.")
@output_option
@click.pass_obj
def command(session: Session, name: str, template: bool, form: str) -> None:
    if template:
        emit_data("yaml" if form == "table" else form, session.client.templates.type_template(name))
        return
    shown = session.client.templates.type(name)
    if form != "table":
        emit_data(form, shown)
        return
    emit_list(form, [{"name": each, **said} for each, said in shown["properties"].items()], COLUMNS)
