"""Create a stack from a template.

The command reads the files that the template and its environments name (get_file, nested templates, types mapped to
templates) and sends them.
"""

from typing import Any

import click

from stoker_client.cli._output import Output, output_option
from stoker_client.cli._session import Session
from stoker_client.cli._stack_input import StackInput, stack_options


@click.command()
@click.argument("name")
@stack_options
@click.option("--enable-rollback", is_flag=True, help="Roll back if the operation fails.")
@output_option
@click.pass_obj
def command(
    session: Session, /, *, name: str, wait: bool, enable_rollback: bool, output: Output, **options: Any
) -> None:
    if options["template"] is None:
        raise click.UsageError("--template is missing")
    # imported here because rich is slow, and usage errors do not need it
    from stoker_client.cli._stack_wait import emit_result, wait_for

    body = StackInput(**options).body() | {"stack_name": name, "disable_rollback": not enable_rollback}
    ref = session.client.stacks.create(body)
    if wait:
        wait_for(session.client, ref, "CREATE")
    emit_result(output, session.client.stacks.show(ref), outputs=wait)
