"""Delete deployments and their derived configs."""

from collections.abc import Sequence

import click

from stoker_client.cli._batch import delete_each
from stoker_client.cli._confirm import yes_option
from stoker_client.cli._session import Session


@click.command()
@click.argument("deployments", nargs=-1, required=True, metavar="DEPLOYMENT...")
@yes_option
@click.pass_obj
def command(session: Session, deployments: Sequence[str], yes: bool) -> None:
    client = session.client

    def delete(deployment: str) -> None:
        details = client.deployments.show(client.deployments.find_id(deployment))
        client.deployments.delete(details["id"])
        client.configs.delete_derived(details["config_id"])

    delete_each(deployments, "deployment", delete, yes=yes)
