"""List the functions that templates of a version may call; without a version, the versions."""

import click

from stoker_client.cli._output import emit_list, output_option
from stoker_client.cli._session import Session

_PREFIX = "heat_template_version."


@click.command()
@click.argument("version", required=False)
@output_option
@click.pass_obj
def command(session: Session, version: str | None, form: str) -> None:
    if version is None:
        emit_list(form, session.client.templates.versions(), ("version", "type", "aliases"))
        return
    full = version if "." in version else f"{_PREFIX}{version}"
    emit_list(form, session.client.templates.functions(full), ("functions", "description"))
