"""Show every run of a deployment, newest first; with NUMBER, one of them with its inputs and outputs."""

import click

from stoker_client.cli._output import emit_list, emit_one, output_option
from stoker_client.cli._session import Session
from stoker_client.errors import ClientError

COLUMNS = (
    "number", "action", "state", "status", "status_code", "asked_by", "queued_time", "start_time", "end_time",
)  # fmt: skip


@click.command()
@click.argument("deployment")
@click.argument("number", type=click.IntRange(min=1), required=False)
@output_option
@click.pass_obj
def command(session: Session, deployment: str, number: int | None, form: str) -> None:
    runs = session.client.deployments.runs(deployment)
    if number is None:
        emit_list(form, runs, COLUMNS)
        return
    for run in runs:
        if run.get("number") == number:
            emit_one(form, run)
            return
    known = ", ".join(str(run.get("number")) for run in runs) or "none so far"
    raise ClientError(f"deployment {deployment} has no run {number}; it has: {known}")
