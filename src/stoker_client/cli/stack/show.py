"""Show a stack."""

import click

from stoker_client.cli._output import Output, emit_data, emit_one, output_option
from stoker_client.cli._session import Session

FIELDS = (
    "id", "stack_name", "description", "stack_status", "stack_status_reason", "creation_time", "updated_time",
    "deletion_time", "parameters", "outputs", "tags", "timeout_mins", "disable_rollback",
)  # fmt: skip


@click.command()
@click.argument("stack")
@output_option
@click.pass_obj
def command(session: Session, stack: str, output: Output) -> None:
    details = session.client.stacks.show(stack)
    if output.is_data:
        emit_data(output.form, details)
        return
    outputs = {output["output_key"]: output.get("output_value") for output in details.get("outputs") or []}
    emit_one(output, {**details, "outputs": outputs}, FIELDS)
