"""Delete deployments, and the configs derived for them."""

from collections.abc import Sequence

import click

from stoker_client.cli._each import each, end
from stoker_client.cli._session import Session


@click.command()
@click.argument("deployments", nargs=-1, required=True, metavar="DEPLOYMENT...")
@click.pass_obj
def command(session: Session, deployments: Sequence[str]) -> None:
    def delete(deployment: str) -> None:
        found = session.client.deployments.show(deployment)
        session.client.deployments.delete(deployment)
        session.client.configs.delete_derived(found["config_id"])

    end(each(deployments, delete))
