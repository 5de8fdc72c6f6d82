"""Make a stack of what another one left when it was abandoned."""

from pathlib import Path

import click

from stoker_client.cli._output import output_option
from stoker_client.cli._session import Session


@click.command()
@click.argument("name")
@click.argument("data", type=click.Path(exists=True, dir_okay=False, path_type=Path), metavar="FILE")
@click.option("--wait", is_flag=True, help="Watch until it is done; fail if it fails.")
@output_option
@click.pass_obj
def command(session: Session, name: str, data: Path, wait: bool, form: str) -> None:
    from stoker_client.cli._waiting import emit_result, wait_for  # rich: not for a usage error

    ref = session.client.stacks.create({"stack_name": name, "adopt_stack_data": data.read_text()})
    if wait:
        wait_for(session.client, ref, "ADOPT")
    emit_result(form, session.client.stacks.show(ref), outputs=wait)
