"""Show a stack."""

import click

from stoker_client.cli._failures import failure_lines
from stoker_client.cli._output import Output, emit_data, emit_one, output_option
from stoker_client.cli._session import Session
from stoker_client.shapes import Stack
from stoker_client.stacks import Operation
from stoker_client.watch import read_events

FIELDS = (
    "id", "stack_name", "description", "stack_status", "stack_status_reason", "failures", "creation_time",
    "updated_time", "deletion_time", "parameters", "outputs", "tags", "timeout_mins", "disable_rollback",
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
    failures = _failures(session, details)
    shown = {**details, "outputs": outputs, **({"failures": failures} if failures else {})}
    emit_one(output, shown, FIELDS, text={"failures": "\n".join(failures)})


def _failures(session: Session, stack: Stack) -> list[str]:
    """Return the causes of a failed operation, also of one that has been rolled back."""
    status = stack["stack_status"]
    if not status.startswith("ROLLBACK_") and not status.endswith("_FAILED"):
        return []
    ref = f"{stack['stack_name']}/{stack['id']}"
    events = session.client.stacks.operation_events(Operation(ref))
    return failure_lines(read_events(ref, events))
