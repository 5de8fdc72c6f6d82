"""Software deployments: a config joined with a server."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import click

from stoker_client.checks import state_of
from stoker_client.cli._groups import Group
from stoker_client.cli._logs import choose_run, logs
from stoker_client.cli._nouns import Noun, delete_each, yes_option
from stoker_client.cli._options import contains_option, given_options, link_option, pair, print_link, status_option
from stoker_client.cli._output import (
    Output,
    Row,
    echo,
    emit_list,
    emit_one,
    emit_value,
    list_options,
    output_option,
    raw_option,
)
from stoker_client.cli._runs import describe_changes
from stoker_client.cli._session import Batch, Session
from stoker_client.cli._wait import report_waiting, wait_for_deployment, wait_for_end
from stoker_client.deployments import name_of, requester_of, server_name_of
from stoker_client.errors import ClientError, NotFound


def _wait_for_cancellation(session: Session, id_: str) -> None:
    reminder = f"is cancelled, and over once its agent has stopped (`stoker deployment cancel --force {id_}`: at once)"
    wait_for_end(session.client, id_, reminder)


def _cells(deployment: Row) -> Row:
    return {
        "name": name_of(deployment),
        "server": server_name_of(deployment),
        "requested_by": requester_of(deployment),
    }


_STATUSES = ("IN_PROGRESS", "COMPLETE", "FAILED")
_NOUN = Noun("deployment", lambda client: client.deployments)
deployment = Group(
    commands=[
        logs,
        _NOUN.list(
            "List the deployments of the project, or of one server or config.",
            ("id", "name", "server", "action", "status", "changed", "creation_time"),
            wide=("config_name", "requested_by", "server_id", "config_id", "changed_items", "status_reason"),
            cells=_cells,
            options=[
                click.option("--server", metavar="SERVER", help="Only this server: name or id."),
                click.option("--config", metavar="CONFIG", help="Only those that run this config: name or id."),
                status_option("Only those in this state.", *_STATUSES),
                contains_option,
            ],
        ),
        _NOUN.cancel(
            "Cancel runs of deployments: the agent stops the script; a queued run does not start.",
            "Wait until the runs have stopped.",
            _wait_for_cancellation,
        ),
    ]
)


@deployment.command("create")
@click.option("--config", "config", required=True, metavar="CONFIG", help="The config: id, or a name that is unique.")
@click.option("--server", "server", required=True, metavar="SERVER", help="The server: name or id.")
@click.option("-i", "--input", "inputs", type=pair, multiple=True, metavar="NAME=VALUE", help="The value of one input.")
@click.option("--allow-undeclared", is_flag=True, help="Pass inputs that the config does not declare.")
@click.option("--action", default="CREATE", show_default=True, help="The action that the config receives.")
@click.option("--signal-transport", default="STOKER_SIGNAL", show_default=True, help="The signal transport.")
@click.option("--timeout", type=click.IntRange(min=1), metavar="SECONDS", help="The time limit of the run.")
@click.option("--name", help="A name for the deployment.")
@click.option("--wait", is_flag=True, help="Wait until the operation ends; fail if it fails.")
@output_option
@click.pass_obj
def create(
    session: Session,
    /,
    *,
    config: str,
    server: str,
    inputs: Sequence[tuple[str, str]],
    allow_undeclared: bool,
    wait: bool,
    output: Output,
    **more: Any,
) -> None:
    """Deploy a config to a server: its agent runs it."""
    client = session.client
    body = {
        "config_id": client.configs.find_id(config),
        "server_id": client.servers.find_id(server),
        "input_values": dict(inputs),
        **({"allow_undeclared": True} if allow_undeclared else {}),
    }
    deployment = client.deployments.create(body | given_options(more))
    if wait:
        report_waiting(deployment)
        deployment = wait_for_deployment(session.client, deployment["id"])
    fields = ("id", "server_id", "config_id", "action", "status", "status_reason", "creation_time", "output_values")
    emit_one(output, deployment, fields)


@deployment.command("delete")
@click.argument("deployments", nargs=-1, required=True, metavar="DEPLOYMENT...")
@click.option("--force", is_flag=True, help="Delete without an undo, for example because the server is lost.")
@yes_option
@click.pass_obj
def delete(session: Session, deployments: Sequence[str], force: bool, yes: bool) -> None:
    """Delete deployments and their derived configs.

    If the config of a deployment has the option `undo`, the deployment disappears when a run on its server has undone
    it.
    """
    client = session.client

    def is_being_undone(id_: str) -> bool:
        try:
            return client.deployments.show(id_)["status"] == "IN_PROGRESS"
        except NotFound:
            return False

    def delete(deployment: str) -> None:
        details = client.deployments.show(deployment)
        client.deployments.delete(details["id"], force=force)
        client.configs.delete_derived(details["config_id"])
        if not force and is_being_undone(details["id"]):
            echo(f"stoker: {deployment} disappears when its server has undone it", err=True)

    delete_each(deployments, "deployment", delete, yes=yes)


_HISTORY_COLUMNS = (
    "number", "action", "state", "status", "status_code", "changed", "requested_by",
    "queued_time", "start_time", "end_time",
)  # fmt: skip


@deployment.command("history")
@click.argument("deployment")
@click.argument("number", type=click.IntRange(min=1), required=False)
@list_options()
@click.pass_obj
def history(session: Session, deployment: str, number: int | None, output: Output) -> None:
    """Show every run of a deployment with its action, newest first.

    With NUMBER, show one run with its inputs and outputs.
    """
    runs = session.client.deployments.runs(deployment)
    if number is None:
        emit_list(output, runs, _HISTORY_COLUMNS, cells=lambda run: {"requested_by": requester_of(run)})
        return
    run = choose_run(runs, number, deployment)
    emit_one(output, run, text={"changes": describe_changes(run.get("changes") or ())})


@deployment.command("output")
@click.argument("deployment")
@click.argument("name", required=False)
@click.option("--all", "all_", is_flag=True, help="Include the script's output and exit code.")
@raw_option
@list_options()
@click.pass_obj
def output(session: Session, deployment: str, name: str | None, all_: bool, raw: bool, output: Output) -> None:
    """Show the outputs of a deployment, or the value of one.

    Without NAME, show the outputs that the config declares; --all adds deploy_stdout, deploy_stderr and
    deploy_status_code.
    """
    values = session.client.deployments.show(deployment).get("output_values") or {}
    if name is not None:
        if name not in values:
            names = ", ".join(sorted(values)) or "none so far"
            raise ClientError(f"deployment {deployment} has no output {name!r}; it has: {names}")
        emit_value(output, values[name], raw=raw)
        return
    outputs = {key: value for key, value in values.items() if all_ or not key.startswith("deploy_")}
    if output.is_data and not output.columns:
        emit_value(output, outputs)
    else:
        emit_list(output, [{"output": key, "value": value} for key, value in outputs.items()], ("output", "value"))


_LATER = "runs again when its stack has repeated what it requires"


@deployment.command("retry")
@click.argument("deployments", nargs=-1, required=True, metavar="DEPLOYMENT...")
@click.option("--wait", is_flag=True, help="Wait until the runs end; fail if one fails.")
@click.pass_obj
def retry(session: Session, deployments: Sequence[str], wait: bool) -> None:
    """Run failed deployments again: the action that failed, under the same id.

    A deployment of a stack is retried by an update of the stack with its present template, which repeats everything in
    the stack that failed.
    """
    client = session.client

    def find(deployment: str) -> tuple[str, str, bool]:
        id_ = client.deployments.find_id(deployment)
        return deployment, id_, len(deployments) > 1 and has_failed(id_)

    def retry(item: tuple[str, str, bool]) -> str:
        deployment, id_, had_failed = item
        # The update that retried another deployment of the same stack may have started this one, too.
        is_repeated = had_failed and not has_failed(id_)
        if is_repeated or client.deployments.retry(id_)["status"] != "FAILED":
            echo(f"deployment {deployment} runs again")
        elif wait:
            raise ClientError(f"deployment {deployment} {_LATER}: wait for its stack (`stoker stack show`)")
        else:
            echo(f"deployment {deployment} {_LATER}")
        return id_

    def has_failed(id_: str) -> bool:
        return client.deployments.show(id_)["status"] == "FAILED"

    with Batch() as batch:
        started = batch.each(batch.each(deployments, find), retry)
        if wait:
            batch.each(started, lambda id_: wait_for_deployment(client, id_))


_FIELDS = (
    "id", "stack_name", "resource_name", "server_name", "server_id", "config_name", "config_id", "requested_by",
    "action", "status", "status_reason", "changed", "changed_items", "creation_time", "updated_time", "check",
    "input_values", "output_values",
)  # fmt: skip


@deployment.command("show")
@click.argument("deployment")
@link_option
@output_option
@click.pass_obj
def show(session: Session, deployment: str, link: bool, output: Output) -> None:
    """Show a deployment."""
    details = session.client.deployments.show(deployment)
    if link:
        print_link(session, "runs", details["id"])
    shown = {**details, **_check(session, details["id"])}
    emit_one(output, shown, _FIELDS, text={"requested_by": requester_of(shown)})


def _check(session: Session, id_: str) -> dict[str, Any]:
    """Return the state of the last check; empty without checks."""
    try:
        check = session.client.checks.show(id_)
    except NotFound:
        return {}
    return {"check": f"{state_of(check)} since {check['since']}"}
