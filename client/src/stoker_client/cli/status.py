"""Show whether the service works, and its servers and stacks by state.

Exits with 6 if the service cannot be reached, and with 1 if it is unhealthy or degraded.
"""

import click

from stoker_client.cli._exit_codes import FAILED
from stoker_client.cli._output import Output, emit_one, output_option
from stoker_client.cli._session import Session
from stoker_client.status import read_status


@click.command()
@output_option
@click.pass_context
def command(ctx: click.Context, output: Output) -> None:
    session = ctx.find_object(Session)
    assert session is not None
    status = read_status(session.client)
    emit_one(output, status)
    if status["health"] != "ok":
        ctx.exit(FAILED)
