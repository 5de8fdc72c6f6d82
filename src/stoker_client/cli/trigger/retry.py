"""Run a trigger again on the servers where it failed or was cancelled, as a new trigger with the same inputs."""

import click

from stoker_client.cli._output import Output, output_option
from stoker_client.cli._session import Session
from stoker_client.cli._trigger_result import emit_trigger, follow_option, follow_trigger


@click.command()
@click.argument("trigger")
@click.option("--all", "all_", is_flag=True, help="Run on all servers, including those where the run is complete.")
@follow_option
@output_option
@click.pass_context
def command(ctx: click.Context, trigger: str, all_: bool, follow: bool, output: Output) -> None:
    session = ctx.find_object(Session)
    assert session is not None
    details = session.client.triggers.retry(session.client.triggers.find_id(trigger), only_failed=not all_)
    if follow:
        follow_trigger(ctx, session.client, details["id"], output)
    else:
        emit_trigger(output, details)
