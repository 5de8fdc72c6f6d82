"""Update a stack, completely or in part.

Without --existing, the options describe the whole stack: omitted parameters get their defaults. With --existing, the
stack keeps its template, environment and parameters except for those in the options.

An update also repeats what failed before, each deployment with the action that failed.
"""

from collections.abc import Sequence
from typing import Any

import click

from stoker_client.cli._output import Output, output_option
from stoker_client.cli._plan import emit_plan
from stoker_client.cli._session import Session
from stoker_client.cli._stack_input import StackInput, stack_options


@click.command()
@click.argument("stack")
@stack_options
@click.option("--existing", is_flag=True, help="Keep template, environment and parameters that are not set.")
@click.option(
    "--clear-parameter", "clear", multiple=True, metavar="NAME",
    help="With --existing: reset this parameter to its default.",
)  # fmt: skip
@click.option(
    "--rollback/--no-rollback", default=None,
    help="Whether this and later updates are rolled back when they fail; default: as before.",
)  # fmt: skip
@click.option("--dry-run", is_flag=True, help="Only show the changes, and in which order actions would run.")
@click.option(
    "--on-servers", is_flag=True, help="With --dry-run: ask the servers what the deployments would change on them."
)
@output_option
@click.pass_obj
def command(
    session: Session,
    /,
    *,
    stack: str,
    existing: bool,
    dry_run: bool,
    on_servers: bool,
    clear: Sequence[str],
    rollback: bool | None,
    wait: bool,
    output: Output,
    **options: Any,
) -> None:
    _check(options["template"], existing, clear)
    if on_servers and not dry_run:
        raise click.UsageError("--on-servers needs --dry-run")
    # imported here because rich is slow, and usage errors do not need it
    from stoker_client.cli._stack_wait import emit_result, wait_for

    body = StackInput(**options).body()
    if clear:
        body["clear_parameters"] = list(clear)
    if rollback is not None:
        body["disable_rollback"] = not rollback
    ref = session.client.stacks.canonical(stack)
    if dry_run:
        answer = session.client.stacks.preview_update(ref, body, existing=existing, on_servers=on_servers)
        changes, runs = answer["resource_changes"], answer.get("planned_runs") or []
        emit_plan(session.client, output, changes, runs, answer.get("server_previews"))
        return
    operation = session.client.stacks.update(ref, body, existing=existing)
    if wait:
        wait_for(session.client, operation, "UPDATE_COMPLETE")
    emit_result(output, session.client.stacks.show(ref), outputs=wait)


def _check(template: str | None, existing: bool, clear: Sequence[str]) -> None:
    if template is None and not existing:
        raise click.UsageError("--template is missing (or --existing, to keep the stack's own)")
    if clear and not existing:
        raise click.UsageError("--clear-parameter needs --existing")
