"""Commands that check whether servers still are as deployments left them, and repair them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import click

from stoker_client.checks import DRIFTED, STATES, UNKNOWN, UNSUPPORTED, awaits_answer, state_of
from stoker_client.cli._groups import Group
from stoker_client.cli._options import choose_servers, selector_option
from stoker_client.cli._output import Output, echo, emit_list, emit_one, list_options, output_option
from stoker_client.cli._runs import describe_changes
from stoker_client.cli._session import DRIFT, FAILED, TIMED_OUT, Batch, Session
from stoker_client.cli._wait import report_waiting, wait_for_deployment
from stoker_client.client import Client
from stoker_client.deployments import name_of, server_name_of
from stoker_client.errors import ClientError
from stoker_client.shapes import Check

_COLUMNS = ("deployment", "server", "state", "since", "summary")
_WIDE = ("deployment_id", "server_id", "checked_at", "check_interval", "enforce", "reason")


def _cells(check: Mapping[str, Any]) -> dict[str, Any]:
    """Return the cells of a check in a list."""
    state = state_of(check)
    is_drifted = state == check["state"] == DRIFTED
    words = [check["summary"]] if is_drifted and check["summary"] else []
    return {
        "deployment": name_of(check),
        "server": server_name_of(check),
        "state": state,
        "summary": ". ".join([*words, *([check["reason"]] if check["reason"] else [])]),
    }


def _differences(check: Check) -> str:
    """Return the lines that show the differences of one check, after an empty one."""
    changes = describe_changes(check.get("changes") or (), indentation="  ")
    return f"\n{name_of(check)} on {server_name_of(check)}:\n{changes}"


@click.command()
@click.argument("stack", required=False)
@click.option(
    "--server", "servers", multiple=True, metavar="SERVER", help="This server: name, id or pattern; can be repeated."
)
@selector_option("All servers that SELECTOR selects.")
@click.option("--timeout", type=click.IntRange(min=1), default=120, show_default=True, metavar="SECONDS",
              help="How long to wait for the agents.")  # fmt: skip
@click.option("--strict", is_flag=True, help="End with 1 also if a config cannot be checked.")
@list_options()
@click.pass_obj
def check(
    session: Session,
    stack: str | None,
    servers: Sequence[str],
    selector: str | None,
    timeout: int,
    strict: bool,
    output: Output,
) -> int:
    """Check whether servers still are as deployments left them, and show the differences.

    Checks the deployments of a stack with its nested stacks, or all deployments on servers. Ends with 3 if something
    has drifted, else with 1 if the state of a deployment is unknown. Configs without a check, such as scripts without
    the option check, are no error unless --strict is set. Nothing changes on the servers.
    """
    if bool(stack) + bool(servers) + bool(selector) != 1:
        raise click.UsageError("give one of STACK, --server and --label")
    client = session.client
    requested = client.checks.request(
        stack=stack and client.stacks.find_id(stack),
        servers=[server["id"] for server in client.servers.find(servers)],
        selector=selector,
    )
    if not requested:
        if selector:
            choose_servers(session, (), selector)  # an error if no server matches
        raise ClientError("no deployment to check")
    checks = [_complete(client, check) for check in client.checks.wait(requested, timeout)]
    emit_list(output, checks, _COLUMNS, wide=_WIDE, cells=_cells)
    if output.form in ("table", "wide"):
        for check in checks:
            if state_of(check) == DRIFTED:
                echo(_differences(check))
    return _exit_code(checks, strict=strict)


def _complete(client: Client, check: Check) -> Check:
    """Return the check, with its differences if it has drifted."""
    return client.checks.show(check["deployment_id"]) if state_of(check) == DRIFTED else check


def _exit_code(checks: Sequence[Check], *, strict: bool) -> int:
    states = {state_of(check) for check in checks}
    if DRIFTED in states:
        return DRIFT
    if any(awaits_answer(check) for check in checks):
        return TIMED_OUT
    return FAILED if UNKNOWN in states or (strict and UNSUPPORTED in states) else 0


drift = Group()


@drift.command("list")
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
    emit_list(output, checks, _COLUMNS, wide=_WIDE, cells=_cells)


@drift.command("repair")
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
        raise click.UsageError("give deployments, --stack or --server, or --all")
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
            batch.each(started, lambda id_: wait_for_deployment(client, id_))


def _find(
    client: Client, state: str | None, stack: str | None, server: str | None, limit: int | None = None
) -> list[Check]:
    return client.checks.all(
        state=state,
        stack=None if stack is None else client.stacks.find_id(stack),
        server=None if server is None else client.servers.find_id(server),
        limit=limit,
    )


_FIELDS = (
    "deployment_id", "name", "server_id", "server_name", "server_status", "state", "since", "checked_at",
    "requested_at", "check_interval", "enforce", "reason",
)  # fmt: skip


@drift.command("show")
@click.argument("deployment")
@output_option
@click.pass_obj
def show(session: Session, deployment: str, output: Output) -> None:
    """Show the last check of a deployment with its differences."""
    client = session.client
    check = client.checks.show(client.deployments.find_id(deployment))
    emit_one(output, check, _FIELDS)
    if output.form in ("table", "wide") and check.get("changes"):
        echo(_differences(check))
