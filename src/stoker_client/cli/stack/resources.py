"""List the resources of a stack."""

import click

from stoker_client.cli._output import Output, emit_list, list_options
from stoker_client.cli._session import Session
from stoker_client.cli._stack_status import is_status, status_option

COLUMNS = ("resource_name", "physical_resource_id", "resource_status", "resource_type")
WIDE = ("updated_time", "resource_status_reason", "required_by")


@click.command()
@click.argument("stack")
@status_option
@list_options()
@click.pass_obj
def command(session: Session, stack: str, status: str | None, output: Output) -> None:
    resources = [
        resource
        for resource in session.client.stacks.resources(stack)
        if is_status(resource["resource_status"], status)
    ]
    emit_list(output, resources, COLUMNS, wide=WIDE)
