"""Run deployments that have drifted again: the same config with the same inputs.

The server's policy and its maintenance windows apply, as for every run. The stack does not change.

  stoker drift repair shop/motd
  stoker drift repair --stack shop --wait
"""

from collections.abc import Sequence

import click

from stoker_client.checks import DRIFTED
from stoker_client.cli._batch import Batch
from stoker_client.cli._deployment_wait import report_waiting, wait_for
from stoker_client.cli._output import echo
from stoker_client.cli._session import Session
from stoker_client.client import Client


@click.command()
@click.argument("deployments", nargs=-1, metavar="[DEPLOYMENT]...")
@click.option("--all", "every", is_flag=True, help="All deployments that have drifted.")
@click.option("--stack", metavar="STACK", help="Those of this stack with its nested stacks: name or id.")
@click.option("--server", metavar="SERVER", help="Those on this server: name or id.")
@click.option("--wait", is_flag=True, help="Wait until the runs end; fail if one fails.")
@click.pass_obj
def command(
    session: Session, deployments: Sequence[str], every: bool, stack: str | None, server: str | None, wait: bool
) -> None:
    if bool(deployments) + every + bool(stack or server) != 1:
        raise click.UsageError("say what to repair: deployments, --stack or --server, or --all")
    client, batch = session.client, Batch()
    ids = batch.each(deployments, client.deployments.find_id) if deployments else _find_drifted(client, stack, server)
    if not ids and not deployments:
        echo("nothing has drifted")

    def repair(id_: str) -> str:
        deployment = client.checks.repair(id_)
        echo(f"deployment {id_} runs again")
        report_waiting(deployment)
        return id_

    started = batch.each(ids, repair)
    if wait:
        batch.each(started, lambda id_: wait_for(client, id_))
    batch.exit()


def _find_drifted(client: Client, stack: str | None, server: str | None) -> Sequence[str]:
    checks = client.checks.all(
        state=DRIFTED,
        stack=None if stack is None else client.stacks.show(stack, outputs=False)["id"],
        server=None if server is None else client.servers.show(server)["id"],
    )
    return [check["deployment_id"] for check in checks]
