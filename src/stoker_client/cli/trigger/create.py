"""Run an action of a stack's resource, a config, or the config of a deployment; the word `create` is optional.

STACK RESOURCE names a deployment, a deployment group, a component or a config of a stack. ACTION selects one of a
component's configs (default: TRIGGER). Without --on or --label, it runs on the servers of the resource's deployments.
The stack does not change.

--follow shows a line for each server until the trigger ends; the exit code is the highest one of the runs.
"""

import time
from typing import Any

import click

from stoker_client.cli._output import Output, emit_data, output_option
from stoker_client.cli._session import Session
from stoker_client.cli._targets import title
from stoker_client.cli._trigger_input import TriggerInput, trigger_options
from stoker_client.cli._trigger_result import emit_trigger, follow_option, follow_trigger
from stoker_client.cli._values import given_options


@click.command()
@trigger_options
@click.option("--name", metavar="NAME", help="A name (default: the names of the deployment and the action).")
@click.option("--require-window", is_flag=True, help="Start on each server when its maintenance window opens.")
@click.option("--dry-run", is_flag=True, help="Wait, and show what the runs would change; nothing changes.")
@follow_option
@output_option
@click.pass_context
def command(
    ctx: click.Context,
    /,
    *,
    name: str | None,
    require_window: bool,
    dry_run: bool,
    follow: bool,
    output: Output,
    **options: Any,
) -> None:
    session = ctx.find_object(Session)
    assert session is not None
    body = TriggerInput(**options).body(lambda: session.client)
    trigger = session.client.triggers.create(
        body
        | given_options(
            {"name": name, "require_window": require_window or None, "mode": "PREVIEW" if dry_run else None}
        )
    )
    if dry_run:
        # imported here because only a dry run needs it
        from stoker_client.cli._server_preview import PATIENCE, show_preview, take_preview

        until = time.monotonic() + PATIENCE
        if output.is_data:
            ended = take_preview(session.client, trigger["id"], until)
            emit_data(output.form, ended)
        else:
            ended = show_preview(session.client, trigger["id"], title(trigger), until)
        ctx.exit(0 if ended["status"] == "COMPLETE" else 1)
    if follow:
        follow_trigger(ctx, session.client, trigger["id"], output)
    else:
        emit_trigger(output, trigger)
