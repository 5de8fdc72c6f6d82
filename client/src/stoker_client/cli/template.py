"""Templates: validate them, and list the functions that they may call."""

from __future__ import annotations

from typing import Any

import click

from stoker_client.cli._lazy import Group
from stoker_client.cli._output import Output, emit_data, emit_list, list_options
from stoker_client.cli._session import Session
from stoker_client.cli._stack_input import StackInput, stack_options

command = Group(entry_group="stoker.commands.template")


@command.command("functions")
@click.argument("version", required=False)
@list_options()
@click.pass_obj
def functions(session: Session, version: str | None, output: Output) -> None:
    """List the functions that templates of a version may call; without a version, the versions."""
    if version is None:
        emit_list(output, session.client.templates.versions(), ("version", "type", "aliases"))
        return
    full = version if "." in version else f"heat_template_version.{version}"
    emit_list(output, session.client.templates.functions(full), ("functions", "description"))


@command.command("validate")
@stack_options
@list_options()
@click.pass_obj
def validate(session: Session, /, *, output: Output, **options: Any) -> None:
    """Check a template and show its parameters."""
    result = session.client.templates.validate(StackInput(**options).body(required="--template is missing"))
    if not output.is_data:
        parameters = [{"name": name, **parameter} for name, parameter in result["Parameters"].items()]
        emit_list(output, parameters, ("name", "Type", "Default", "Description"))
    else:
        emit_data(output.form, result)
