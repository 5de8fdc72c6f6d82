"""Delete deployments and their derived configs.

If the config of a deployment has the option `undo`, the deployment disappears when a run on its server has undone it.
"""

from collections.abc import Sequence

import click

from stoker_client.cli._batch import delete_each
from stoker_client.cli._confirm import yes_option
from stoker_client.cli._output import echo
from stoker_client.cli._session import Session
from stoker_client.errors import NotFound


@click.command()
@click.argument("deployments", nargs=-1, required=True, metavar="DEPLOYMENT...")
@click.option("--force", is_flag=True, help="Delete without an undo, for example because the server is lost.")
@yes_option
@click.pass_obj
def command(session: Session, deployments: Sequence[str], force: bool, yes: bool) -> None:
    client = session.client

    def is_being_undone(id_: str) -> bool:
        try:
            return client.deployments.show(id_)["status"] == "IN_PROGRESS"
        except NotFound:
            return False

    def delete(deployment: str) -> None:
        details = client.deployments.show(client.deployments.find_id(deployment))
        client.deployments.delete(details["id"], force=force)
        client.configs.delete_derived(details["config_id"])
        if not force and is_being_undone(details["id"]):
            echo(f"stoker: {deployment} disappears when its server has undone it", err=True)

    delete_each(deployments, "deployment", delete, yes=yes)
