"""Commands of ``stoker stack`` that take a template: create and update, with the plan of a dry run."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from difflib import unified_diff
from typing import Any, cast

import click

from stoker_client.cli._options import given_options, link_option, merge, pair, print_link, together, wait_option
from stoker_client.cli._output import (
    Output,
    block,
    echo,
    emit_data,
    emit_list,
    emit_one,
    output_option,
    printable,
)
from stoker_client.cli._preview import complete_previews, show_preview
from stoker_client.cli._session import Session
from stoker_client.cli._wait import wait_for_stack
from stoker_client.client import Client
from stoker_client.collection import Anything, is_id
from stoker_client.shapes import Change, Stack

stack_options = together([
    click.option("-t", "--template", metavar="FILE", help="The template: a path or a URL."),
    click.option(
        "-e", "--environment", "environments", multiple=True, metavar="FILE",
        help="An environment; later ones take precedence.",
    ),
    click.option(
        "-P", "--parameter", "parameters", type=pair, multiple=True, metavar="NAME=VALUE", help="One parameter."
    ),
    click.option(
        "--parameter-file", "parameter_files", type=pair, multiple=True, metavar="NAME=FILE",
        help="One parameter, with the content of a file as its value.",
    ),
    click.option("--timeout", type=click.IntRange(min=1), metavar="MINUTES", help="The time limit of the operation."),
    click.option("--tags", metavar="A,B", help="Tags, separated by commas."),
])  # fmt: skip


def stack_body(
    required: str,
    *,
    template: str | None,
    environments: Sequence[str],
    parameters: Sequence[tuple[str, str]],
    parameter_files: Sequence[tuple[str, str]],
    timeout: int | None,
    tags: str | None,
) -> dict[str, Any]:
    """
    Return the request that ``stack_options`` describe, with all files read.

    Raises UsageError with the text ``required``, if it is not empty, when the template is missing.
    """
    if required and template is None:
        raise click.UsageError(required)
    from stoker_client.templates.bundle import collect  # imported here because help texts do not need PyYAML

    body = collect(template, environments)
    body["parameters"] = merge(parameters, parameter_files, "--parameter-file")
    return body | given_options({"timeout_mins": timeout, "tags": tags})


_dry_run_options = together([
    click.option("--dry-run", is_flag=True, help="Only show the changes, and in which order actions would run."),
    click.option(
        "--on-servers", is_flag=True, help="With --dry-run: ask the servers what the deployments would change on them."
    ),
])  # fmt: skip


@click.command("create")
@click.argument("name")
@stack_options
@wait_option
@click.option("--rollback", is_flag=True, help="Roll back failures; a failed creation is deleted.")
@_dry_run_options
@link_option
@output_option
@click.pass_obj
def create(
    session: Session,
    /,
    *,
    name: str,
    wait: bool,
    rollback: bool,
    dry_run: bool,
    on_servers: bool,
    link: bool,
    output: Output,
    **options: Any,
) -> None:
    """Create a stack from a template.

    The command reads the files that the template and its environments name (get_file, nested templates, types mapped to
    templates) and sends them.
    """
    _check_dry_run(dry_run, on_servers)
    body = stack_body("--template is missing", **options) | {
        "stack_name": name,
        "disable_rollback": not rollback,
    }
    if dry_run:
        stack, runs = session.client.stacks.preview(body)
        added = list(_flatten_resources(cast(Any, stack)["resources"]))
        previews = session.client.stacks.preview_on_servers(body) if on_servers else None
        _emit_plan(session.client, output, {"added": added}, runs, previews)
        return
    operation = session.client.stacks.create(body)
    if link:
        print_link(session, "stacks", *operation.ref.split("/"))
    if wait:
        wait_for_stack(session.client, operation, "CREATE_COMPLETE")
    emit_result(output, session.client.stacks.show(operation.ref), outputs=wait)


@click.command("update")
@click.argument("stack")
@stack_options
@wait_option
@click.option("--existing", is_flag=True, help="Keep template, environment and parameters that are not set.")
@click.option(
    "--clear-parameter", "clear", multiple=True, metavar="NAME",
    help="With --existing: reset this parameter to its default.",
)  # fmt: skip
@click.option(
    "--rollback/--no-rollback", default=None,
    help="Whether this and later updates are rolled back when they fail; default: as before.",
)  # fmt: skip
@_dry_run_options
@click.option("--plan", metavar="PLAN", help="Update only if this is the plan that --dry-run prints.")
@output_option
@click.pass_obj
def update(
    session: Session,
    /,
    *,
    stack: str,
    existing: bool,
    dry_run: bool,
    on_servers: bool,
    clear: Sequence[str],
    rollback: bool | None,
    plan: str | None,
    wait: bool,
    output: Output,
    **options: Any,
) -> None:
    """Update a stack, completely or in part.

    Without --existing, the options describe the whole stack: omitted parameters get their defaults. With --existing,
    the stack keeps its template, environment and parameters except for those in the options.

    An update also repeats what failed before, each deployment with the action that failed.
    """
    _check_dry_run(dry_run, on_servers)
    if clear and not existing:
        raise click.UsageError("--clear-parameter needs --existing")
    missing = "" if existing else "--template is missing (or --existing, to keep the stack's own)"
    body = stack_body(missing, **options)
    body |= given_options({
        "clear_parameters": list(clear) or None,
        "disable_rollback": None if rollback is None else not rollback,
        "plan": plan,
    })  # fmt: skip
    ref = session.client.stacks.canonical(stack)
    if dry_run:
        answer = session.client.stacks.preview_update(ref, body, existing=existing, on_servers=on_servers)
        changes, runs = answer["resource_changes"], answer.get("planned_runs") or []
        _emit_plan(session.client, output, changes, runs, answer.get("server_previews"), answer.get("plan"))
        return
    operation = session.client.stacks.update(ref, body, existing=existing)
    if wait:
        wait_for_stack(session.client, operation, "UPDATE_COMPLETE")
    emit_result(output, session.client.stacks.show(ref), outputs=wait)


def _check_dry_run(dry_run: bool, on_servers: bool) -> None:
    if on_servers and not dry_run:
        raise click.UsageError("--on-servers needs --dry-run")


#: The fields of a stack after a change.
_SUMMARY = ("id", "stack_name", "stack_status", "stack_status_reason", "creation_time", "updated_time")
#: Lines of the difference of one property.
_MOST_LINES = 100
_LINE_COLORS = {"+": "green", "-": "red", "@": "cyan"}
#: (kind, sign, color, word)
_KINDS = (
    ("added", "+", "green", "is added"),
    ("updated", "~", "yellow", "is updated in place"),
    ("replaced", "±", "magenta", "is replaced"),
    ("deleted", "-", "red", "is deleted"),
)


def _emit_plan(
    client: Client,
    output: Output,
    changes: Mapping[str, Sequence[Change]],
    runs: Sequence[Anything],
    previews: Sequence[Anything] | None,
    plan: str | None = None,
) -> None:
    """Print the plan, and what the previews show on servers. Deletes the triggers of the previews."""
    planned = {"planned_runs": runs, **given_options({"plan": plan})}
    if not output.is_data:
        _show_plan(changes, runs)
        if plan is not None:
            echo(f"plan {plan}")
        for preview in complete_previews(client, previews or ()):
            show_preview(preview)
    elif previews is None:
        emit_data(output.form, {**changes, **planned})
    else:
        completed = complete_previews(client, previews)
        emit_data(output.form, {"resource_changes": changes, **planned, "server_previews": completed})


def _show_plan(changes: Mapping[str, Sequence[Change]], runs: Sequence[Anything]) -> None:
    """Print the plan. click omits colors if the output is not a terminal."""
    for kind, sign, color, word in _KINDS:
        for change in sorted(changes.get(kind) or (), key=lambda change: change["resource_name"]):
            name = printable(f"{sign} {change['resource_name']}")
            echo(f"{click.style(name, fg=color)} ({change['resource_type']}) {word}{_why(kind, change)}")
            for line in _differences(change):
                echo(f"    {click.style(printable(line), fg=_LINE_COLORS.get(line[:1]))}")
    counts = [f"{len(changes.get(kind) or ())} {kind}" for kind, *_ in _KINDS]
    echo(f"{', '.join(counts)}, {len(changes.get('unchanged') or ())} unchanged")
    for run in runs:
        echo(printable(f"runs: {_describe(run)}"))


def _flatten_resources(resources: Sequence[Any]) -> Iterator[Any]:
    """Yield all resources of a preview, including those of nested stacks, which are nested lists."""
    for item in resources:
        if isinstance(item, list):
            yield from _flatten_resources(item)
        else:
            yield item


def _why(kind: str, change: Change) -> str:
    differing = change.get("changed_properties") or []
    if kind not in ("updated", "replaced"):
        return ""
    if not differing:
        return ": it failed before" if change.get("resource_status") == "FAILED" else ""
    return printable(f": {', '.join(differing)} {'differs' if len(differing) == 1 else 'differ'}")


def _differences(change: Change) -> Iterator[str]:
    """Yield lines that show what is different in properties: ``name: old → new``, or a difference of lines."""
    before, after = change.get("previous_properties") or {}, change.get("properties") or {}
    for name in change.get("changed_properties") or ():
        old, new = before.get(name), after.get(name)
        if new is None or (old is not None and is_id(str(old))):
            continue  # not known yet, or a reference to another object
        old_lines, new_lines = block(old).splitlines(), block(new).splitlines()
        if len(old_lines) <= 1 and len(new_lines) <= 1:
            yield f"{name}: {block(old)} → {block(new)}"
            continue
        yield f"{name}:"
        lines = list(unified_diff(old_lines, new_lines, n=2, lineterm=""))[2:]
        yield from lines[:_MOST_LINES]
        if len(lines) > _MOST_LINES:
            yield f"… {len(lines) - _MOST_LINES} more lines"


def _describe(run: Anything) -> str:
    """Return the action, the deployment and the server of a run. Runs on one server are in their order."""
    action = "the undo" if run["mode"] else run["action"]
    server = run["server_name"] or run["server_id"] or "a new server"
    return f"{action} of {run['resource_name']} on {server}"


def emit_result(output: Output, stack: Stack, *, outputs: bool) -> None:
    """Print a stack after a change. A table shows the ``outputs`` if they are requested and not empty."""
    if outputs and stack.get("outputs"):
        emit_list(output, stack["outputs"], ("output_key", "output_value"), data=stack)
    elif output.is_data:
        emit_data(output.form, stack)
    else:
        emit_one(output, stack, _SUMMARY)
