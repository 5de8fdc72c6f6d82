"""Commands for servers: those that agents run on."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Literal

import click

from stoker_client import triggers
from stoker_client.cli._groups import Group
from stoker_client.cli._nouns import Noun, delete_each, yes_option
from stoker_client.cli._options import (
    choose_servers,
    chosen_servers,
    label_option,
    rollout_options,
    selector_option,
    status_option,
)
from stoker_client.cli._output import (
    Output,
    echo,
    emit_list,
    join_labels,
    list_options,
    output_option,
)
from stoker_client.cli._server_policy import policy
from stoker_client.cli._session import Batch, Session
from stoker_client.cli.enrollment import enroll, user_data

_STATUSES = ("ENROLLING", "PENDING_APPROVAL", "ONLINE", "OFFLINE", "LEFT")
server = Group(
    commands=[enroll, policy, user_data, Noun("server", lambda client: client.servers).show("Show a server.")]
)


def _version(server: Mapping[str, Any]) -> str:
    """Return the agent's version, with a mark if it is not the service's."""
    version = server.get("agent_version") or ""
    return f"{version} (outdated)" if version and server.get("agent_outdated") else str(version)


_all_option = click.option("--all", "every", is_flag=True, help="All servers that wait for approval.")


def _choose_pending(
    session: Session, refs: Sequence[str], *, every: bool, key: Literal["id", "name"] = "name"
) -> Sequence[str]:
    """
    Return ``refs``, or with ``every`` the member ``key`` of all servers that wait. Raises UsageError for both or
    neither.
    """
    if bool(refs) == every:
        raise click.UsageError("give either servers or --all")
    if refs:
        return refs
    pending = [server[key] for server in session.client.servers.all(status="PENDING_APPROVAL")]
    if not pending:
        echo("no server waits for approval", err=True)
    return pending


@server.command("approve")
@click.argument("servers", nargs=-1, metavar="[SERVER]...")
@_all_option
@click.pass_obj
def approve(session: Session, servers: Sequence[str], every: bool) -> None:
    """Approve servers that wait for it; their agents start at once.

    \b
      stoker server approve web1 web2
      stoker server approve --all

    Approval by name also lets stacks use a name that the machine chose itself.
    """
    # By id, because approval by name also confirms the name.
    chosen = _choose_pending(session, servers, every=every, key="id")
    with Batch() as batch:
        for name in batch.each(chosen, lambda ref: session.client.servers.approve(ref)["name"]):
            echo(f"server {name} approved")


@server.command("delete")
@click.argument("servers", nargs=-1, metavar="[SERVER]...")
@label_option
@yes_option
@click.pass_obj
def delete(session: Session, servers: Sequence[str], selector: str | None, yes: bool) -> None:
    """Delete enrolled servers; their agents lose access.

    \b
      stoker server delete web1 web2
      stoker server delete --label role=web
    """
    chosen = chosen_servers(session, servers, selector)
    delete_each(chosen, "server", session.client.servers.delete, yes=yes)
    echo("stoker: agents that still run there are refused from now on; stop them on the machines", err=True)


@server.command("label")
@click.argument("words", nargs=-1, metavar="[SERVER]... [NAME=VALUE | NAME-]...")
@label_option
@click.pass_obj
def label(session: Session, words: Sequence[str], selector: str | None) -> None:
    """Label servers: NAME=VALUE sets a label, NAME- removes it.

    \b
      stoker server label web1 role=web site-
      stoker server label web1 web2 role=web
      stoker server label --label role=web site=vienna
    """
    refs, changes = _split(words, named=not selector)
    if not changes:
        raise click.UsageError("give at least one change: NAME=VALUE or NAME-")
    servers = session.client.servers
    with Batch() as batch:
        chosen = chosen_servers(session, refs, selector)
        for name in batch.each(chosen, lambda ref: servers.change(ref, {"labels": changes})["name"]):
            echo(f"server {name} labeled")


def _split(words: Sequence[str], *, named: bool) -> tuple[Sequence[str], dict[str, str | None]]:
    """Split the words into servers (at least one if ``named``) and changes."""
    count = 1 if named else 0
    while named and count < len(words) and not _is_change(words[count]):
        count += 1
    return words[:count], dict(_change(word) for word in words[count:])


def _is_change(word: str) -> bool:
    return "=" in word or word.endswith("-")


def _change(text: str) -> tuple[str, str | None]:
    name, equals, value = text.partition("=")
    if equals and name:
        return name, value
    if not equals and text.endswith("-") and text != "-":
        return text.removesuffix("-"), None
    raise click.UsageError(f"{text!r} is neither NAME=VALUE nor NAME-")


_COLUMNS = ("id", "name", "status", "agent_version", "last_seen", "labels")
_WIDE = ("kind", "hostname", "os", "address", "problem", "hooks", "policy_source", "created_at")


@server.command("list")
@selector_option("Only servers that SELECTOR selects.")
@status_option("Only those in this state.", *_STATUSES)
@list_options()
@click.pass_obj
def list_(session: Session, selector: str | None, status: str | None, output: Output) -> None:
    """List the servers of the project, sorted by name.

    With --limit, and without a selector and --sort, the oldest servers are listed, in the order of their creation.
    """
    servers = session.client.servers.all(selector=selector, status=status, limit=output.first)
    # With --limit, the service reads no more servers than the first ones, which are the oldest.
    order = "name" if output.first is None else None
    emit_list(output, servers, _COLUMNS, wide=_WIDE, order=order, cells=_cells)


def _cells(server: Mapping[str, Any]) -> dict[str, str]:
    status = f"{server.get('status')} (cannot run)" if server.get("problem") else str(server.get("status"))
    return {
        "status": status,
        "labels": join_labels(server),
        "agent_version": _version(server),
    }


@server.command("facts")
@list_options()
@click.pass_obj
def facts(session: Session, output: Output) -> None:
    """List the names that selectors can use, labels and facts, with their most frequent values."""
    rows = [
        {**fact, "values": [f"{value['value']} ({value['count']})" for value in fact["values"]]}
        for fact in session.client.servers.facts()
    ]
    emit_list(output, rows, ("name", "count", "values"), cells=lambda row: {"values": ", ".join(row["values"][:5])})


@server.command("reject")
@click.argument("servers", nargs=-1, metavar="[SERVER]...")
@_all_option
@yes_option
@click.pass_obj
def reject(session: Session, servers: Sequence[str], every: bool, yes: bool) -> None:
    """Reject servers that wait for approval, and delete them.

    \b
      stoker server reject web1 web2
      stoker server reject --all
    """
    chosen = _choose_pending(session, servers, every=every)
    if chosen:
        delete_each(chosen, "server", session.client.servers.reject, yes=yes)


#: The config of the upgrades. It has no content, so one serves them all.
_UPGRADE = {"name": "agent-upgrade", "group": "agent"}


@server.command("upgrade")
@click.argument("servers", nargs=-1, metavar="[SERVER]...")
@label_option
@rollout_options
@click.option("--require-window", is_flag=True, help="Upgrade each server when its maintenance window opens.")
@click.option("-f", "--follow", is_flag=True, help="Show all servers until the upgrade ends.")
@output_option
@click.pass_obj
def upgrade(
    session: Session,
    /,
    *,
    servers: Sequence[str],
    selector: str | None,
    require_window: bool,
    follow: bool,
    output: Output,
    **rollout: Any,
) -> int:
    """Upgrade the agents of servers to the service's version.

    The upgrade is a trigger of a config of the group `agent`: `stoker trigger show`, `cancel` and `retry` go on with
    it. An agent verifies the new program, lets its runs end, restarts, and returns to the old program if the new one
    does not reach the service within two minutes.

    \b
      stoker server upgrade web1 web2
      stoker server upgrade --label role=web --canary 10% --max-fail-percentage 5 --follow
    """
    # imported here because no other command of this group shows a trigger
    from stoker_client.cli.trigger import emit_or_follow

    chosen = [server["id"] for server in choose_servers(session, servers, selector)]
    client = session.client
    present = next((config["id"] for config in client.configs.all() if _UPGRADE.items() <= config.items()), None)
    trigger = client.triggers.create(
        triggers.body(
            config_id=present or client.configs.create(_UPGRADE)["id"],
            name=_UPGRADE["name"],
            servers=chosen,
            require_window=require_window or None,
            **rollout,
        )
    )
    return emit_or_follow(client, trigger, output, follow=follow)
