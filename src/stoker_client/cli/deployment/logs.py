"""Print what a deployment writes: its standard output and standard error, each to ours."""

from collections.abc import Iterator

import click

from stoker_client.cli._output import emit_data, output_option
from stoker_client.cli._session import Session
from stoker_client.deployments import Deployments
from stoker_client.shapes import LogChunk


@click.command()
@click.argument("deployment")
@click.option("-f", "--follow", is_flag=True, help="Go on until it is over.")
@click.option("--stream", type=click.Choice(["stdout", "stderr"]), help="Only this stream.")
@output_option
@click.pass_obj
def command(session: Session, deployment: str, follow: bool, stream: str | None, form: str) -> None:
    found = (
        chunk for chunk in _chunks(session.client.deployments, deployment, follow) if stream in (None, chunk["stream"])
    )
    if form != "table" and not follow:
        emit_data(form, list(found))
        return
    for chunk in found:
        if form == "table":
            click.echo(chunk["data"], nl=False, err=chunk["stream"] == "stderr")
        else:
            emit_data(form, chunk, stream=True)


def _chunks(deployments: Deployments, id_: str, follow: bool) -> Iterator[LogChunk]:
    if follow:
        return (chunk for page in deployments.follow(id_) for chunk in page["logs"])
    return deployments.logs(id_)
