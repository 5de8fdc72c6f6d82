"""Show a trigger and its servers."""

import click

from stoker_client.cli._output import emit_data, emit_list, output_option
from stoker_client.cli._session import Session
from stoker_client.cli._targets import name_of, run_of, said_by, seconds_of, state_of
from stoker_client.cli._trigger_result import emit_trigger, follow_option, follow_trigger
from stoker_client.shapes import Target

COLUMNS = ("server", "state", "percent", "code", "seconds", "deployment_id", "reason")


@click.command()
@click.argument("trigger")
@follow_option
@output_option
@click.pass_context
def command(ctx: click.Context, trigger: str, follow: bool, form: str) -> None:
    session = ctx.find_object(Session)
    assert session is not None
    if follow:
        follow_trigger(ctx, session.client, trigger, form)
    shown = session.client.triggers.show(trigger)
    if form != "table":
        emit_data(form, shown)
        return
    emit_trigger(form, shown)
    click.echo()
    emit_list(form, [_row(target) for target in shown.get("targets") or []], COLUMNS)


def _row(target: Target) -> dict[str, object]:
    run = run_of(target)
    return {
        "server": name_of(target),
        "state": state_of(target),
        "percent": run.get("percent"),
        "code": run.get("status_code"),
        "seconds": seconds_of(run),
        "deployment_id": target.get("deployment_id"),
        "reason": said_by(target),
    }
