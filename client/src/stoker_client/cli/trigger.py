"""Commands for triggers: create, follow, cancel and retry them, and show their results."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import click

from stoker_client.cli._fold import print_groups
from stoker_client.cli._groups import Group
from stoker_client.cli._logs import LogPrinter, stream_option
from stoker_client.cli._nouns import Noun
from stoker_client.cli._options import contains_option, given_options, link_option, print_link, status_option
from stoker_client.cli._output import (
    Output,
    data_option,
    echo,
    emit_data,
    emit_list,
    emit_one,
    list_options,
    output_option,
    raw_option,
)
from stoker_client.cli._runs import OUTPUT_COLUMNS, list_outputs, run_of, seconds_of, state_of, summary_of, title
from stoker_client.cli._session import FAILED, Session
from stoker_client.cli._trigger_input import trigger_body, trigger_options
from stoker_client.cli._wait import (
    describe_continuation,
    explaining_interrupt,
    follow_trigger,
    trigger_failure,
)
from stoker_client.client import Client
from stoker_client.errors import ClientError
from stoker_client.shapes import Target, Trigger
from stoker_client.triggers import STATUSES, TargetLabels, read_logs

_FIELDS = (
    "id", "name", "action", "source", "status", "status_reason", "total", "queued", "running", "complete", "failed",
    "cancelled", "changed", "unchanged", "input_values", "max_concurrent", "max_fail_percentage", "canary",
    "requested_by", "schedule_id", "creation_time", "end_time",
)  # fmt: skip

_follow_option = click.option(
    "-f", "--follow", is_flag=True, help="Show all servers until the trigger ends; exit with the highest exit code."
)


def _wait_for_cancellation(session: Session, id_: str) -> None:
    with explaining_interrupt(
        f"trigger {id_} is cancelled, and over once its agents have stopped: `stoker trigger show --follow {id_}` shows"
        f" it, `stoker trigger cancel --force {id_}` waits for none",
        doing="watching",
    ):
        follow_trigger(session.client, id_)


_NOUN = Noun("trigger", lambda client: client.triggers)
trigger = Group(
    help="""Run an action of a component, or any config, now, on one server or on many.

    \b
      stoker trigger app database BACKUP -i path=/var/backups --follow
      stoker trigger app database BACKUP --label role=db --max-concurrent 10
      stoker trigger --config setup --on web1 --on web2
      stoker trigger create list database BACKUP     # for a stack named like a subcommand

    Any other first word is read as the arguments of `trigger create`.
    """,
    default="create",
    commands=[
        _NOUN.list(
            "List the triggers of the project, newest first.",
            ("id", "name", "status", "total", "complete", "failed", "changed", "creation_time"),
            wide=("action", "queued", "running", "cancelled", "unchanged", "requested_by", "end_time"),
            options=[
                status_option("Only triggers in this state.", *STATUSES),
                click.option("--stack", metavar="STACK", help="Only triggers of this stack: name or id."),
                contains_option,
                click.option("--by", "requested_by", metavar="USER", help="Only triggers of this user."),
            ],
        ),
        _NOUN.delete("Delete ended triggers, with their deployments and logs."),
        _NOUN.cancel(
            "Cancel triggers: queued runs do not start, active runs are stopped.",
            "Show the progress until all runs have stopped.",
            _wait_for_cancellation,
        ),
    ],
)


@trigger.command("create")
@trigger_options
@click.option("--name", metavar="NAME", help="A name (default: the names of the deployment and the action).")
@click.option("--require-window", is_flag=True, help="Start on each server when its maintenance window opens.")
@click.option("--dry-run", is_flag=True, help="Wait, and show what the runs would change; nothing changes.")
@_follow_option
@link_option
@output_option
@click.pass_obj
def create(
    session: Session,
    /,
    *,
    name: str | None,
    require_window: bool,
    dry_run: bool,
    follow: bool,
    link: bool,
    output: Output,
    **options: Any,
) -> int:
    """Run an action of a stack's resource, a config, or the config of a deployment; the word `create` is optional.

    STACK RESOURCE names a deployment, a deployment group, a component or a config of a stack. ACTION selects one of a
    component's configs (default: TRIGGER). Without --on or --label, it runs on the servers of the resource's
    deployments. The stack does not change.

    --follow shows a line for each server until the trigger ends; the exit code is the highest one of the runs.
    """
    body = trigger_body(session, **options)
    trigger = session.client.triggers.create(
        body
        | given_options(
            {"name": name, "require_window": require_window or None, "mode": "PREVIEW" if dry_run else None}
        )
    )
    if link:
        print_link(session, "triggers", trigger["id"])
    if dry_run:
        # imported here because only a dry run needs it
        from stoker_client.cli._preview import show_targets, take_previews

        [ended] = take_previews(session.client, [trigger["id"]])
        if output.is_data:
            emit_data(output.form, ended)
        else:
            show_targets(title(trigger), ended.get("targets") or [])
        return 0 if ended["status"] == "COMPLETE" else FAILED
    return emit_or_follow(session.client, trigger, output, follow=follow)


@trigger.command("logs")
@click.argument("trigger")
@click.option("-f", "--follow", is_flag=True, help="Continue until the end.")
@click.option("--server", metavar="SERVER", help="Only this server: name or id.")
@stream_option
@raw_option
@data_option
@click.pass_obj
def logs(
    session: Session, /, *, trigger: str, follow: bool, server: str | None, stream: str | None, raw: bool, form: str
) -> None:
    """Print the output of a trigger's runs; with several runs, each line begins with the name of the server."""
    client = session.client
    id_ = client.triggers.find_id(trigger)
    wanted_server = None if server is None else client.servers.resolvable(server)
    targets = [target for target in client.triggers.show(id_).get("targets") or [] if _is(target, wanted_server)]
    if server is not None and not targets:
        raise ClientError(f"trigger {trigger} does not run on a server {server!r} (`stoker trigger show` says where)")
    server_ids, labels = {target["server_id"] for target in targets}, TargetLabels(targets)
    chunks = client.triggers.follow_logs(id_) if follow else read_logs(client.deployments, targets)
    chunks = (
        chunk for chunk in chunks
        if stream in (None, chunk["stream"]) and (server is None or chunk["server_id"] in server_ids)
    )  # fmt: skip
    if form != "table" and not follow:
        emit_data(form, list(chunks))
    else:
        LogPrinter(form, name_of=labels.of if len(targets) > 1 else None, raw=raw).all(chunks)


def _is(target: Target, server: str | None) -> bool:
    return server in (None, target["server_id"], target.get("server_name"))


@trigger.command("outputs")
@click.argument("trigger")
@click.argument("name", required=False)
@list_options()
@click.pass_obj
def outputs(session: Session, trigger: str, name: str | None, output: Output) -> None:
    """Show the outputs of a trigger's runs, or of one output NAME on all servers.

    Outputs are the values that the config declares; `stoker deployment output --all` also shows a script's output.
    """
    client = session.client
    outputs = list_outputs(client.triggers.show(trigger).get("targets") or [])
    if name is not None and not any(row["output"] == name for row in outputs):
        names = ", ".join(sorted({str(row["output"]) for row in outputs})) or "none so far"
        raise ClientError(f"trigger {trigger} has no output {name!r}; it has: {names}")
    rows = [row for row in outputs if name in (None, row["output"])]
    emit_list(output, rows, OUTPUT_COLUMNS, wide=("server_id", "deployment_id"))


@trigger.command("retry")
@click.argument("trigger")
@click.option("--all", "all_", is_flag=True, help="Run on all servers, including those where the run is complete.")
@_follow_option
@output_option
@click.pass_obj
def retry(session: Session, trigger: str, all_: bool, follow: bool, output: Output) -> int:
    """Run a trigger again on the servers where it failed or was cancelled, as a new trigger with the same inputs."""
    details = session.client.triggers.retry(trigger, only_failed=not all_)
    return emit_or_follow(session.client, details, output, follow=follow)


_SHOW_COLUMNS = ("server", "state", "percent", "code", "changed", "seconds", "deployment_id", "reason")
_TARGET_STATUSES = ("QUEUED", "IN_PROGRESS", "COMPLETE", "FAILED", "CANCELLED")
_target_status_option = status_option("Only the servers in this state.", *_TARGET_STATUSES)


@trigger.command("show")
@click.argument("trigger")
@_target_status_option
@click.option("--fold", is_flag=True, help="Only the output of ended runs, once for all servers with equal output.")
@click.option("--diff", is_flag=True, help="As --fold; of other groups only the differences from the largest one.")
@_follow_option
@link_option
@output_option
@click.pass_obj
def show(
    session: Session,
    /,
    *,
    trigger: str,
    status: str | None,
    fold: bool,
    diff: bool,
    follow: bool,
    link: bool,
    output: Output,
) -> int:
    """Show a trigger, its servers, and the outputs of its runs.

    Output is equal for --fold if it differs only in the servers' own names and addresses, and in times; exit codes are
    equal, too.
    """
    id_ = session.client.triggers.find_id(trigger)
    if link:
        print_link(session, "triggers", id_)
    if fold or diff:
        return _show_groups(session.client, id_, status, output, follow=follow, shows_diff=diff)
    if follow:
        return _follow(session.client, id_, output)
    details = session.client.triggers.show(id_)
    targets = [target for target in details.get("targets") or [] if status in (None, target["status"])]
    if output.form not in ("table", "wide"):
        emit_one(output, {**details, "targets": targets}, _FIELDS)
        return 0
    _emit(output, details)
    if not output.columns:
        _emit_targets(targets, TargetLabels(details.get("targets") or ()), output)
    return 0


def _show_groups(
    client: Client, id_: str, status: str | None, output: Output, *, follow: bool, shows_diff: bool
) -> int:
    """Print the output of a trigger's runs, folded; with ``follow``, when the trigger has ended."""
    code = _follow(client, id_, Output()) if follow else 0
    groups, total = client.triggers.output_groups(id_, status=status)
    if output.is_data:
        emit_data(output.form, groups)
    else:
        print_groups(groups, total, shows_diff=shows_diff)
    return code


_TARGET_COLUMNS = ("position", "server_name", "status", "state", "exit_code", "changed", "updated_time", "digest")


@trigger.command("targets")
@click.argument("trigger")
@_target_status_option
@click.option("-f", "--follow", is_flag=True, help="Print a line for each change of a state until the trigger ends.")
@list_options()
@click.pass_obj
def targets(session: Session, trigger: str, status: str | None, follow: bool, output: Output) -> None:
    """List the states of a trigger's servers, without outputs: for triggers on thousands of servers."""
    if follow:
        for event in session.client.triggers.events(trigger, ["state"]):
            target = event.data
            if event.name == "state" and status in (None, target["status"]):
                words = (target["server_name"], target["state"] or target["status"], target["exit_code"] or "")
                echo("\t".join(words))
        return
    rows = session.client.triggers.targets(trigger, status=status)
    emit_list(output, rows, _TARGET_COLUMNS, wide=("server_id", "resource_name", "deployment_id"))


def _emit_targets(targets: Sequence[Target], labels: TargetLabels, output: Output) -> None:
    """Print tables of the targets and of their outputs."""
    echo()
    rows = [_row(target, labels) for target in targets]
    emit_list(output, rows, _SHOW_COLUMNS, wide=("server_id", "name"), order="server")
    if outputs := list_outputs(targets):
        echo()
        emit_list(output, outputs, OUTPUT_COLUMNS, order="server")


def _row(target: Target, labels: TargetLabels) -> dict[str, object]:
    run = run_of(target)
    return {
        "server": labels.of(target),
        "server_id": target["server_id"],
        "name": target.get("name"),
        "state": state_of(target),
        "percent": run.get("percent"),
        "code": run.get("status_code"),
        "changed": target.get("changed"),
        "seconds": seconds_of(run),
        "deployment_id": target.get("deployment_id"),
        "reason": summary_of(target),
    }


def _emit(output: Output, trigger: Trigger) -> None:
    """Print a trigger without its targets."""
    emit_one(output, {name: value for name, value in trigger.items() if name != "targets" or output.is_data}, _FIELDS)


def _follow(client: Client, id_: str, output: Output) -> int:
    """Show a trigger until it ends. Return the highest exit code of its runs."""
    with explaining_interrupt(describe_continuation(id_), doing="watching"):
        watch = follow_trigger(client, id_)
    if output.is_data:
        emit_data(output.form, {**watch.trigger, "targets": watch.targets})
    if line := trigger_failure(watch):
        echo(f"stoker: {line}", err=True)
    return watch.exit_code


def emit_or_follow(client: Client, trigger: Trigger, output: Output, *, follow: bool) -> int:
    """Print a trigger that has begun, or with ``follow`` show it until it ends. Return the exit code."""
    if follow:
        return _follow(client, trigger["id"], output)
    _emit(output, trigger)
    return 0
