"""List the servers of the project."""

from collections.abc import Mapping, Sequence
from typing import Any

import click

from stoker_client.cli._output import Output, emit_list, list_options
from stoker_client.cli._session import Session
from stoker_client.cli._values import pair

COLUMNS = ("id", "name", "status", "last_seen", "labels")
WIDE = ("kind", "hostname", "agent_version", "hooks", "policy_source", "created_at")
STATUSES = ("ENROLLING", "ONLINE", "OFFLINE")


@click.command()
@click.option(
    "--label", "labels", type=pair, multiple=True, metavar="NAME=VALUE",
    help="Only servers with this label; repeat for servers with several labels.",
)  # fmt: skip
@click.option("--status", type=click.Choice(STATUSES, case_sensitive=False), help="Only those in this state.")
@list_options()
@click.pass_obj
def command(session: Session, labels: Sequence[tuple[str, str]], status: str | None, output: Output) -> None:
    servers = [server for server in session.client.servers.all(dict(labels)) if status in (None, server["status"])]
    emit_list(output, servers, COLUMNS, wide=WIDE, order="name", cells=lambda server: {"labels": _labels(server)})


def _labels(server: Mapping[str, Any]) -> str:
    return ", ".join(f"{name}={value}" for name, value in sorted((server.get("labels") or {}).items()))
