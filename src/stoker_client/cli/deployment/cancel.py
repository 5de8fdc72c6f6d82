"""Cancel what deployments run: the agent stops the script; one that has not begun never will."""

from collections.abc import Sequence

import click

from stoker_client.cli._each import each, end
from stoker_client.cli._session import Session


@click.command()
@click.argument("deployments", nargs=-1, required=True, metavar="DEPLOYMENT...")
@click.option("--force", is_flag=True, help="Do not wait for agents to say that they stopped.")
@click.option("--wait", is_flag=True, help="Wait until it has stopped.")
@click.pass_obj
def command(session: Session, deployments: Sequence[str], force: bool, wait: bool) -> None:
    def cancel(deployment: str) -> None:
        session.client.deployments.cancel(deployment, force=force)
        if wait:
            for _ in session.client.deployments.follow(deployment):
                pass

    end(each(deployments, cancel))
