"""List the servers of the project, sorted by name.

With --limit, and without a selector and --sort, the oldest servers are listed, in the order of their creation.
"""

from collections.abc import Mapping, Sequence
from typing import Any

import click

from stoker_client.cli._agent_versions import upgrade_text, version_text
from stoker_client.cli._output import Output, emit_list, list_options
from stoker_client.cli._selector_option import selector_option
from stoker_client.cli._session import Session
from stoker_client.selectors import join

COLUMNS = ("id", "name", "status", "agent_version", "last_seen", "labels")
WIDE = ("kind", "hostname", "os", "address", "agent_upgrade", "problem", "hooks", "policy_source", "created_at")
STATUSES = ("ENROLLING", "PENDING_APPROVAL", "ONLINE", "OFFLINE", "LEFT")


@click.command()
@selector_option("Only servers that SELECTOR selects.")
@click.option("--status", type=click.Choice(STATUSES, case_sensitive=False), help="Only those in this state.")
@list_options()
@click.pass_obj
def command(session: Session, selectors: Sequence[str], status: str | None, output: Output) -> None:
    servers = list(session.client.servers.iterate(join(selectors), status=status, limit=output.first))
    # With --limit, the service reads no more servers than the first ones, which are the oldest.
    order = "name" if output.first is None else None
    emit_list(output, servers, COLUMNS, wide=WIDE, order=order, cells=_cells)


def _cells(server: Mapping[str, Any]) -> dict[str, str]:
    status = f"{server.get('status')} (cannot run)" if server.get("problem") else str(server.get("status"))
    return {
        "status": status,
        "labels": _labels(server),
        "agent_version": version_text(server),
        "agent_upgrade": upgrade_text(server),
    }


def _labels(server: Mapping[str, Any]) -> str:
    return ", ".join(f"{name}={value}" for name, value in sorted((server.get("labels") or {}).items()))
