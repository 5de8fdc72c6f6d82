"""Selects servers that wait for approval: by name, or all of them."""

from collections.abc import Sequence
from typing import Literal

import click

from stoker_client.cli._output import echo
from stoker_client.cli._session import Session

all_option = click.option("--all", "every", is_flag=True, help="All servers that wait for approval.")


def choose_pending(
    session: Session, refs: Sequence[str], *, every: bool, key: Literal["id", "name"] = "name"
) -> Sequence[str]:
    """
    Return ``refs``, or with ``every`` the member ``key`` of all servers that wait. Raises UsageError for both or
    neither.
    """
    if bool(refs) == every:
        raise click.UsageError("say which servers: either by name, or with --all")
    if refs:
        return refs
    pending = [server[key] for server in session.client.servers.all() if server["status"] == "PENDING_APPROVAL"]
    if not pending:
        echo("no server waits for approval", err=True)
    return pending
