"""Show every run of a deployment with its action, newest first.

With NUMBER, show one run with its inputs and outputs.
"""

import click

from stoker_client.cli._changes import describe_changes
from stoker_client.cli._output import Output, emit_list, emit_one, list_options
from stoker_client.cli._session import Session
from stoker_client.deployments import requester_of
from stoker_client.errors import ClientError

COLUMNS = (
    "number", "action", "state", "status", "status_code", "changed", "requested_by",
    "queued_time", "start_time", "end_time",
)  # fmt: skip


@click.command()
@click.argument("deployment")
@click.argument("number", type=click.IntRange(min=1), required=False)
@list_options()
@click.pass_obj
def command(session: Session, deployment: str, number: int | None, output: Output) -> None:
    deployments = session.client.deployments
    runs = deployments.runs(deployments.find_id(deployment))
    if number is None:
        emit_list(output, runs, COLUMNS, cells=lambda run: {"requested_by": requester_of(run)})
        return
    for run in runs:
        if run.get("number") == number:
            emit_one(output, run, text={"changes": describe_changes(run.get("changes") or ())})
            return
    numbers = ", ".join(str(run.get("number")) for run in runs) or "none so far"
    raise ClientError(f"deployment {deployment} has no run {number}; it has: {numbers}")
