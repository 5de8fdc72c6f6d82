"""Run an action of a stack's resource, a config, or what a deployment runs; `create` itself may be left out.

STACK RESOURCE names a deployment, a deployment group, a component or a config of a stack, ACTION which of a
component's configs runs (TRIGGER, where there is only one). It runs where the resource's deployments do, unless --on or
--label says otherwise; the stack stays as it is.

With --follow every server's line is shown until all is done, and the exit code is the worst one of the runs.
"""

from typing import Any

import click

from stoker_client.cli._output import Output, output_option
from stoker_client.cli._session import Session
from stoker_client.cli._trigger_input import TriggerInput, trigger_options
from stoker_client.cli._trigger_result import emit_trigger, follow_option, follow_trigger
from stoker_client.cli._values import given_options


@click.command()
@trigger_options
@click.option("--name", metavar="NAME", help="A name for it (default: of the deployment, and the action).")
@click.option("--require-window", is_flag=True, help="Begin on each server when its maintenance window opens.")
@follow_option
@output_option
@click.pass_context
def command(
    ctx: click.Context, /, *, name: str | None, require_window: bool, follow: bool, output: Output, **given: Any
) -> None:
    session = ctx.find_object(Session)
    assert session is not None
    body = TriggerInput(**given).body(lambda: session.client)
    made = session.client.triggers.create(
        body | given_options({"name": name, "require_window": require_window or None})
    )
    if follow:
        follow_trigger(ctx, session.client, made["id"], output)
    else:
        emit_trigger(output, made)
