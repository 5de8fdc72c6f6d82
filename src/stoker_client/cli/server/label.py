"""Label a server: NAME=VALUE sets a label, NAME- takes it away; without any, show those it has."""

from collections.abc import Sequence

import click

from stoker_client.cli._output import emit_data, emit_list, output_option
from stoker_client.cli._session import Session


def _change(text: str) -> tuple[str, str | None]:
    name, equals, value = text.partition("=")
    if equals and name:
        return name, value
    if not equals and text.endswith("-") and text != "-":
        return text.removesuffix("-"), None
    raise click.BadParameter(f"{text!r} is neither NAME=VALUE nor NAME-")


@click.command()
@click.argument("server")
@click.argument("labels", nargs=-1, type=_change, metavar="[NAME=VALUE | NAME-]...")
@output_option
@click.pass_obj
def command(session: Session, server: str, labels: Sequence[tuple[str, str | None]], form: str) -> None:
    servers = session.client.servers
    shown = servers.label(server, dict(labels)) if labels else servers.show(server)
    has = shown.get("labels") or {}
    if form != "table":
        emit_data(form, has)
    else:
        emit_list(form, [{"label": name, "value": value} for name, value in sorted(has.items())], ("label", "value"))
