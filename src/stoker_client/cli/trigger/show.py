"""Show a trigger, its servers, and the outputs of its runs."""

import click

from stoker_client.cli._output import Output, echo, emit_list, emit_one, output_option
from stoker_client.cli._session import Session
from stoker_client.cli._targets import OUTPUT_COLUMNS, list_outputs, run_of, seconds_of, state_of, summary_of
from stoker_client.cli._trigger_result import FIELDS, emit_trigger, follow_option, follow_trigger
from stoker_client.shapes import Target
from stoker_client.target_labels import TargetLabels

COLUMNS = ("server", "state", "percent", "code", "changed", "seconds", "deployment_id", "reason")
TARGET_STATUSES = ("QUEUED", "IN_PROGRESS", "COMPLETE", "FAILED", "CANCELLED")


@click.command()
@click.argument("trigger")
@click.option(
    "--status", type=click.Choice(TARGET_STATUSES, case_sensitive=False), help="Only the servers in this state."
)
@follow_option
@output_option
@click.pass_context
def command(ctx: click.Context, trigger: str, status: str | None, follow: bool, output: Output) -> None:
    session = ctx.find_object(Session)
    assert session is not None
    id_ = session.client.triggers.find_id(trigger)
    if follow:
        follow_trigger(ctx, session.client, id_, output)
    details = session.client.triggers.show(id_)
    targets = [target for target in details.get("targets") or [] if status in (None, target["status"])]
    if output.form not in ("table", "wide"):
        emit_one(output, {**details, "targets": targets}, FIELDS)
        return
    emit_trigger(output, details)
    if output.columns:
        return
    echo()
    labels = TargetLabels(details.get("targets") or [])
    rows = [_row(target, labels) for target in targets]
    emit_list(output, rows, COLUMNS, wide=("server_id", "name"), order="server")
    if outputs := list_outputs(targets):
        echo()
        emit_list(output, outputs, OUTPUT_COLUMNS, order="server")


def _row(target: Target, labels: TargetLabels) -> dict[str, object]:
    run = run_of(target)
    return {
        "server": labels.of(target),
        "server_id": target["server_id"],
        "name": target.get("name"),
        "state": state_of(target),
        "percent": run.get("percent"),
        "code": run.get("status_code"),
        "changed": target.get("changed"),
        "seconds": seconds_of(run),
        "deployment_id": target.get("deployment_id"),
        "reason": summary_of(target),
    }
