"""Drift: differences between servers and what deployments left there."""

from __future__ import annotations

from collections.abc import Sequence

import click

from stoker_client.checks import DRIFTED, STATES
from stoker_client.cli._batch import Batch
from stoker_client.cli._drift_views import COLUMNS, WIDE, cells, differences
from stoker_client.cli._lazy import Group
from stoker_client.cli._output import Output, echo, emit_list, emit_one, list_options, output_option
from stoker_client.cli._session import Session
from stoker_client.cli._wait import report_waiting, wait_for
from stoker_client.client import Client
from stoker_client.shapes import Check

command = Group()


@command.command("list")
@click.option("--all", "every", is_flag=True, help="Checks of every state.")
@click.option("--state", type=click.Choice(STATES, case_sensitive=False), help="Checks of this state instead.")
@click.option("--stack", metavar="STACK", help="Only this stack with its nested stacks: name or id.")
@click.option("--server", metavar="SERVER", help="Only this server: name or id.")
@list_options()
@click.pass_obj
def list_(
    session: Session, every: bool, state: str | None, stack: str | None, server: str | None, output: Output
) -> None:
    """List deployments whose servers have drifted; --all: the last check of every deployment."""
    checks = _find(session.client, state or (None if every else DRIFTED), stack, server, output.first)
    emit_list(output, checks, COLUMNS, wide=WIDE, cells=cells)


@command.command("repair")
@click.argument("deployments", nargs=-1, metavar="[DEPLOYMENT]...")
@click.option("--all", "every", is_flag=True, help="All deployments that have drifted.")
@click.option("--stack", metavar="STACK", help="Those of this stack with its nested stacks: name or id.")
@click.option("--server", metavar="SERVER", help="Those on this server: name or id.")
@click.option("--wait", is_flag=True, help="Wait until the runs end; fail if one fails.")
@click.pass_obj
def repair(
    session: Session, deployments: Sequence[str], every: bool, stack: str | None, server: str | None, wait: bool
) -> None:
    """Run deployments that have drifted again: the same config with the same inputs.

    The server's policy and its maintenance windows apply, as for every run. The stack does not change.

    \b
      stoker drift repair shop/motd
      stoker drift repair --stack shop --wait
    """
    if bool(deployments) + every + bool(stack or server) != 1:
        raise click.UsageError("say what to repair: deployments, --stack or --server, or --all")
    client = session.client

    def repair(id_: str) -> str:
        deployment = client.checks.repair(id_)
        echo(f"deployment {id_} runs again")
        report_waiting(deployment)
        return id_

    with Batch() as batch:
        if deployments:
            ids = batch.each(deployments, client.deployments.find_id)
        else:
            ids = [check["deployment_id"] for check in _find(client, DRIFTED, stack, server)]
            if not ids:
                echo("nothing has drifted")
        started = batch.each(ids, repair)
        if wait:
            batch.each(started, lambda id_: wait_for(client, id_))


def _find(
    client: Client, state: str | None, stack: str | None, server: str | None, limit: int | None = None
) -> list[Check]:
    return client.checks.all(
        state=state,
        stack=None if stack is None else client.stacks.show(stack, outputs=False)["id"],
        server=None if server is None else client.servers.show(server)["id"],
        limit=limit,
    )


_FIELDS = (
    "deployment_id", "name", "server_id", "server_name", "server_status", "state", "since", "checked_at",
    "requested_at", "check_interval", "enforce", "reason",
)  # fmt: skip


@command.command("show")
@click.argument("deployment")
@output_option
@click.pass_obj
def show(session: Session, deployment: str, output: Output) -> None:
    """Show the last check of a deployment with its differences."""
    client = session.client
    check = client.checks.show(client.deployments.find_id(deployment))
    emit_one(output, check, _FIELDS)
    if output.form in ("table", "wide") and check.get("changes"):
        echo("\n" + "\n".join(differences(check)))
