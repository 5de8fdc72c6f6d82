"""The command ``stoker server upgrade``."""

from __future__ import annotations

from collections.abc import Sequence

import click

from stoker_client.cli._batch import Batch
from stoker_client.cli._options import canary_option
from stoker_client.cli._output import Output, echo, emit_list, list_options
from stoker_client.cli._servers import chosen_servers, label_option
from stoker_client.cli._session import Session
from stoker_client.shapes import AgentUpgrade

_COLUMNS = ("server_name", "status", "agent_version", "version", "reason")


_WIDE = ("server_id", "from_version", "is_canary", "rollout_id", "requested_by", "requested_at")


@click.command("upgrade")
@click.argument("servers", nargs=-1, metavar="[SERVER]...")
@label_option
@canary_option("Upgrade this number, or percentage, of the servers first.")
@click.option("--pause-on-failure", is_flag=True, help="Do not upgrade further servers after a failure.")
@click.option("--status", "shows", is_flag=True, help="Show the last upgrade of each server.")
@click.option("--cancel", "cancels", is_flag=True, help="Cancel upgrades that have not begun.")
@list_options()
@click.pass_obj
def upgrade(
    session: Session,
    /,
    *,
    servers: Sequence[str],
    selectors: Sequence[str],
    canary: int | str | None,
    pause_on_failure: bool,
    shows: bool,
    cancels: bool,
    output: Output,
) -> None:
    """Upgrade the agents of servers to the service's version.

    An agent verifies the new program, lets its runs end, restarts, and returns to the old program if the new one does
    not reach the service within two minutes. Canaries go first; the others follow when all canaries have ended.

    \b
      stoker server upgrade web1 web2
      stoker server upgrade --label role=web --canary 10% --pause-on-failure
      stoker server upgrade --status
      stoker server upgrade --cancel web2
    """
    if (shows or cancels) and (canary or pause_on_failure or (shows and cancels)):
        raise click.UsageError("--status and --cancel take servers or --label only")
    api = session.client.servers
    if shows:
        emit_list(output, _list(session, servers, selectors), _COLUMNS, wide=_WIDE, order="server_name")
        return
    chosen = chosen_servers(session, servers, selectors)
    if cancels:
        with Batch() as batch:
            batch.each(chosen, lambda ref: _cancel(session, ref))
        return
    upgrades = api.upgrade(_ids(session, chosen), canary=canary or 0, pause_on_failure=pause_on_failure)
    emit_list(output, upgrades, _COLUMNS, wide=_WIDE, order="server_name")


def _cancel(session: Session, ref: str) -> None:
    session.client.servers.cancel_upgrade(ref)
    echo(f"upgrade of server {ref} cancelled")


def _list(session: Session, servers: Sequence[str], selectors: Sequence[str]) -> list[AgentUpgrade]:
    """Return the upgrades of the servers, by default of all servers."""
    upgrades = session.client.servers.upgrades()
    if not servers and not selectors:
        return upgrades
    chosen = set(_ids(session, chosen_servers(session, servers, selectors)))
    return [upgrade for upgrade in upgrades if upgrade["server_id"] in chosen]


def _ids(session: Session, refs: Sequence[str]) -> list[str]:
    """Return the ids of servers, which may be named by the beginnings of their ids. Raises NotFound."""
    return [server["id"] for server in session.client.servers.find(refs)]
