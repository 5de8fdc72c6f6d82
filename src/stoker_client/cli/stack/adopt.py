"""Create a stack from the data of an abandoned stack."""

from pathlib import Path

import click

from stoker_client.cli._output import Output, output_option
from stoker_client.cli._session import Session


@click.command()
@click.argument("name")
@click.argument("data", type=click.Path(exists=True, dir_okay=False, path_type=Path), metavar="FILE")
@click.option("--wait", is_flag=True, help="Show the progress until the operation ends; fail if it fails.")
@output_option
@click.pass_obj
def command(session: Session, name: str, data: Path, wait: bool, output: Output) -> None:
    # imported here because rich is slow, and usage errors do not need it
    from stoker_client.cli._stack_wait import emit_result, wait_for

    operation = session.client.stacks.create({"stack_name": name, "adopt_stack_data": data.read_text()})
    if wait:
        wait_for(session.client, operation, "ADOPT_COMPLETE")
    emit_result(output, session.client.stacks.show(operation.ref), outputs=wait)
