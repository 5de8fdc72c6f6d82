"""Cancel runs of deployments: the agent stops the script; a queued run does not start."""

from collections.abc import Sequence

import click

from stoker_client.cli._batch import Batch
from stoker_client.cli._deployment_wait import wait_for_end
from stoker_client.cli._output import echo
from stoker_client.cli._session import Session


@click.command()
@click.argument("deployments", nargs=-1, required=True, metavar="DEPLOYMENT...")
@click.option("--force", is_flag=True, help="Do not wait for the agents' confirmation.")
@click.option("--wait", is_flag=True, help="Wait until the operation has stopped.")
@click.pass_obj
def command(session: Session, deployments: Sequence[str], force: bool, wait: bool) -> None:
    client = session.client

    def cancel(deployment: str) -> str:
        id_ = client.deployments.cancel(client.deployments.find_id(deployment), force=force)["id"]
        echo(f"deployment {deployment} cancelled")
        return id_

    batch = Batch()
    cancelled = batch.each(deployments, cancel)
    if wait:  # after all cancellations, so that waiting delays none of them
        batch.each(cancelled, lambda id_: _wait(session, id_))
    batch.exit()


def _wait(session: Session, deployment: str) -> None:
    reminder = (
        f"is cancelled, and over once its agent has stopped (`stoker deployment cancel --force {deployment}`: at once)"
    )
    wait_for_end(session.client, deployment, reminder)
