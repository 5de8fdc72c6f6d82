"""Draw a stack's resources with their dependencies and states."""

from pathlib import Path

import click

from stoker_client import graph_renderer
from stoker_client.cli._output import echo
from stoker_client.cli._session import Session


@click.command()
@click.argument("stack")
@click.option("--format", "form", type=click.Choice(["svg", "dot"]), default="svg", show_default=True)
@click.option(
    "--output-file", type=click.Path(dir_okay=False, path_type=Path), metavar="FILE", help="The file to write."
)
@click.pass_obj
def command(session: Session, stack: str, form: str, output_file: Path | None) -> None:
    resources = session.client.stacks.resources(session.client.stacks.canonical(stack))
    text = graph_renderer.svg(resources) if form == "svg" else graph_renderer.dot(resources)
    if output_file is None:
        echo(text, nl=False)
    else:
        output_file.write_text(text)
