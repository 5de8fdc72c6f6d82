"""Commands for templates and the resource types in them."""

from __future__ import annotations

from typing import Any

import click

from stoker_client.cli._groups import Group
from stoker_client.cli._output import Output, emit_data, emit_list, list_options
from stoker_client.cli._session import Session
from stoker_client.cli._stack_changes import stack_body, stack_options

template = Group(entry_group="stoker.commands.template")


@template.command("functions")
@click.argument("version", required=False)
@list_options()
@click.pass_obj
def functions(session: Session, version: str | None, output: Output) -> None:
    """List the functions that templates of a version may call; without a version, the versions."""
    if version is None:
        versions = session.client.templates.versions()
        columns = ("version", "type", "aliases")
        emit_list(output, versions, columns, cells=lambda version: {"aliases": ", ".join(version["aliases"])})
        return
    full = version if "." in version else f"heat_template_version.{version}"
    emit_list(output, session.client.templates.functions(full), ("functions", "description"))


@template.command("validate")
@stack_options
@list_options()
@click.pass_obj
def validate(session: Session, /, *, output: Output, **options: Any) -> None:
    """Check a template and show its parameters."""
    result = session.client.templates.validate(stack_body("--template is missing", **options))
    parameters = [{"name": name, **parameter} for name, parameter in result["Parameters"].items()]
    emit_list(output, parameters, ("name", "Type", "Default", "Description"), data=result)


resource_type = Group()


@resource_type.command("list")
@list_options()
@click.pass_obj
def list_resource_types(session: Session, output: Output) -> None:
    """List the resource types."""
    emit_list(output, session.client.templates.types(), ("resource_type", "description"))


@resource_type.command("show")
@click.argument("name")
@click.option("--template", is_flag=True, help="Print a template with one resource of the type.")
@list_options()
@click.pass_obj
def show_resource_type(session: Session, name: str, template: bool, output: Output) -> None:
    """Show a resource type: its properties and attributes, or with --template a template to start from."""
    if template:
        emit_data(output.data_form, session.client.templates.type_template(name))
        return
    details = session.client.templates.type(name)
    properties = [{"name": name, **schema} for name, schema in details["properties"].items()]
    columns = ("name", "type", "required", "update_allowed", "default", "description")
    emit_list(output, properties, columns, data=details)
