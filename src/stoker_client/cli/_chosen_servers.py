"""Selects the servers of a command: by name, or by label."""

from collections.abc import Sequence

import click

from stoker_client.cli._session import Session
from stoker_client.cli._start_wait import choose_servers
from stoker_client.cli._values import pair

label_option = click.option(
    "--label", "labels", type=pair, multiple=True, metavar="NAME=VALUE",
    help="All servers with this label; repeat for servers with several labels.",
)  # fmt: skip


def chosen_servers(session: Session, refs: Sequence[str], labels: Sequence[tuple[str, str]]) -> Sequence[str]:
    """Return ``refs``, or the names of the servers with all ``labels``. Raises UsageError for both or neither."""
    if bool(refs) == bool(labels):
        raise click.UsageError("say which servers: either by name, or with --label")
    return refs or [server["name"] for server in choose_servers(session.client, (), dict(labels))]
