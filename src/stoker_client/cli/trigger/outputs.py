"""Show the outputs of a trigger's runs, or of one output NAME on all servers.

Outputs are the values that the config declares; `stoker deployment output --all` also shows a script's output.
"""

import click

from stoker_client.cli._output import Output, emit_list, list_options
from stoker_client.cli._session import Session
from stoker_client.cli._targets import OUTPUT_COLUMNS, list_outputs
from stoker_client.errors import ClientError


@click.command()
@click.argument("trigger")
@click.argument("name", required=False)
@list_options()
@click.pass_obj
def command(session: Session, trigger: str, name: str | None, output: Output) -> None:
    client = session.client
    outputs = list_outputs(client.triggers.show(client.triggers.find_id(trigger)).get("targets") or [])
    if name is not None and not any(row["output"] == name for row in outputs):
        names = ", ".join(sorted({str(row["output"]) for row in outputs})) or "none so far"
        raise ClientError(f"trigger {trigger} has no output {name!r}; it has: {names}")
    rows = [row for row in outputs if name in (None, row["output"])]
    emit_list(output, rows, OUTPUT_COLUMNS, wide=("server_id", "deployment_id"))
