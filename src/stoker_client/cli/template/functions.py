"""List the functions that templates of a version may call; without a version, the versions."""

import click

from stoker_client.cli._output import Output, emit_list, list_options
from stoker_client.cli._session import Session

_PREFIX = "heat_template_version."


@click.command()
@click.argument("version", required=False)
@list_options()
@click.pass_obj
def command(session: Session, version: str | None, output: Output) -> None:
    if version is None:
        emit_list(output, session.client.templates.versions(), ("version", "type", "aliases"))
        return
    full = version if "." in version else f"{_PREFIX}{version}"
    emit_list(output, session.client.templates.functions(full), ("functions", "description"))
