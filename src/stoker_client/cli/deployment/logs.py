"""Print what a deployment writes: its standard output and standard error, each to ours."""

import click

from stoker_client.cli._log_output import LogPrinter, stream_option
from stoker_client.cli._output import emit_data, output_option
from stoker_client.cli._session import Session


@click.command()
@click.argument("deployment")
@click.option("-f", "--follow", is_flag=True, help="Go on until it is over.")
@stream_option
@output_option
@click.pass_obj
def command(session: Session, deployment: str, follow: bool, stream: str | None, form: str) -> None:
    deployments = session.client.deployments
    chunks = deployments.stream(deployment) if follow else deployments.logs(deployment)
    found = (chunk for chunk in chunks if stream in (None, chunk["stream"]))
    if form != "table" and not follow:
        emit_data(form, list(found))
    else:
        LogPrinter(form).all(found)
