"""Run failed deployments again, with the same config, inputs and id."""

from collections.abc import Sequence

import click

from stoker_client.cli._batch import Batch
from stoker_client.cli._deployment_wait import wait_for
from stoker_client.cli._session import Session


@click.command()
@click.argument("deployments", nargs=-1, required=True, metavar="DEPLOYMENT...")
@click.option("--wait", is_flag=True, help="Wait until the operation ends; fail if it fails.")
@click.pass_obj
def command(session: Session, deployments: Sequence[str], wait: bool) -> None:
    client, batch = session.client, Batch()

    def retry(deployment: str) -> str:
        id_ = client.deployments.retry(client.deployments.find_id(deployment))["id"]
        click.echo(f"deployment {deployment} runs again")
        return id_

    started = batch.each(deployments, retry)
    if wait:
        batch.each(started, lambda id_: wait_for(client, id_))
    batch.exit()
