"""Create a stack from a template.

The command reads the files that the template and its environments name (get_file, nested templates, types mapped to
templates) and sends them.
"""

from typing import Any, cast

import click

from stoker_client.cli._output import Output, output_option
from stoker_client.cli._plan import emit_plan, flatten_resources
from stoker_client.cli._session import Session
from stoker_client.cli._stack_input import StackInput, stack_options


@click.command()
@click.argument("name")
@stack_options
@click.option("--rollback", is_flag=True, help="Roll back failures; a failed creation is deleted.")
@click.option("--dry-run", is_flag=True, help="Only show the resources, and in which order actions would run.")
@click.option(
    "--on-servers", is_flag=True, help="With --dry-run: ask the servers what the deployments would change on them."
)
@output_option
@click.pass_obj
def command(
    session: Session,
    /,
    *,
    name: str,
    wait: bool,
    rollback: bool,
    dry_run: bool,
    on_servers: bool,
    output: Output,
    **options: Any,
) -> None:
    if options["template"] is None:
        raise click.UsageError("--template is missing")
    if on_servers and not dry_run:
        raise click.UsageError("--on-servers needs --dry-run")
    # imported here because rich is slow, and usage errors do not need it
    from stoker_client.cli._stack_wait import emit_result, wait_for

    body = StackInput(**options).body() | {"stack_name": name, "disable_rollback": not rollback}
    if dry_run:
        stack, runs = session.client.stacks.preview(body)
        added = list(flatten_resources(cast(Any, stack)["resources"]))
        previews = session.client.stacks.preview_on_servers(body) if on_servers else None
        emit_plan(session.client, output, {"added": added}, runs, previews)
        return
    operation = session.client.stacks.create(body)
    if wait:
        wait_for(session.client, operation, "CREATE_COMPLETE")
    emit_result(output, session.client.stacks.show(operation.ref), outputs=wait)
