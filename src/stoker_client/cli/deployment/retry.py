"""Run failed deployments again: the action that failed, under the same id.

A deployment of a stack is retried by an update of the stack with its present template, which repeats everything in the
stack that failed.
"""

from collections.abc import Sequence

import click

from stoker_client.cli._batch import Batch
from stoker_client.cli._deployment_wait import wait_for
from stoker_client.cli._output import echo
from stoker_client.cli._session import Session
from stoker_client.errors import ClientError

_LATER = "runs again when its stack has repeated what it requires"


@click.command()
@click.argument("deployments", nargs=-1, required=True, metavar="DEPLOYMENT...")
@click.option("--wait", is_flag=True, help="Wait until the runs end; fail if one fails.")
@click.pass_obj
def command(session: Session, deployments: Sequence[str], wait: bool) -> None:
    client, batch = session.client, Batch()

    def find(deployment: str) -> tuple[str, str, bool]:
        id_ = client.deployments.find_id(deployment)
        return deployment, id_, len(deployments) > 1 and has_failed(id_)

    def retry(item: tuple[str, str, bool]) -> str:
        deployment, id_, had_failed = item
        # The update that retried another deployment of the same stack may have started this one, too.
        is_repeated = had_failed and not has_failed(id_)
        if is_repeated or client.deployments.retry(id_)["status"] != "FAILED":
            echo(f"deployment {deployment} runs again")
        elif wait:
            raise ClientError(f"deployment {deployment} {_LATER}: wait for its stack (`stoker stack show`)")
        else:
            echo(f"deployment {deployment} {_LATER}")
        return id_

    def has_failed(id_: str) -> bool:
        return client.deployments.show(id_)["status"] == "FAILED"

    started = batch.each(batch.each(deployments, find), retry)
    if wait:
        batch.each(started, lambda id_: wait_for(client, id_))
    batch.exit()
