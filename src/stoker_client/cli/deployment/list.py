"""List the deployments of the project, or of one server."""

from collections.abc import Mapping

import click

from stoker_client.cli._output import Output, emit_list, list_options
from stoker_client.cli._servers import server_id, server_names
from stoker_client.cli._session import Session

COLUMNS = ("id", "server", "action", "status", "creation_time")
WIDE = ("server_id", "config_id", "status_reason")
STATUSES = ("IN_PROGRESS", "COMPLETE", "FAILED")


@click.command()
@click.option("--server", metavar="SERVER", help="Only this server's: name or id.")
@click.option("--status", type=click.Choice(STATUSES, case_sensitive=False), help="Only those in this state.")
@list_options()
@click.pass_obj
def command(session: Session, server: str | None, status: str | None, output: Output) -> None:
    client = session.client
    wanted = server_id(client, server) if server is not None else None
    found = [each for each in client.deployments.all(wanted) if status in (None, each["status"])]
    names: Mapping[str, str] = {}
    if not output.is_data and (not output.columns or "server" in output.columns):
        names = server_names(client)
    emit_list(
        output,
        found,
        COLUMNS,
        wide=WIDE,
        cells=lambda each: {"server": names.get(each["server_id"], each["server_id"])},
    )
