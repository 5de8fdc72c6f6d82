"""List the servers of the project."""

from collections.abc import Sequence

import click

from stoker_client.cli._output import emit_list, output_option
from stoker_client.cli._session import Session
from stoker_client.cli._values import pair
from stoker_client.shapes import Server

COLUMNS = ("id", "name", "kind", "status", "last_seen", "hostname", "labels")


@click.command()
@click.option(
    "--label", "labels", type=pair, multiple=True, metavar="NAME=VALUE",
    help="Only those with this label; of several, with all.",
)  # fmt: skip
@output_option
@click.pass_obj
def command(session: Session, labels: Sequence[tuple[str, str]], form: str) -> None:
    servers = session.client.servers.all(dict(labels))
    if form != "table":
        emit_list(form, servers, COLUMNS)
    else:
        emit_list(form, [{**server, "labels": _labels(server)} for server in servers], COLUMNS)


def _labels(server: Server) -> str:
    return ", ".join(f"{name}={value}" for name, value in sorted((server.get("labels") or {}).items()))
