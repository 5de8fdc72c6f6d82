"""Cancel what deployments run: the agent stops the script; one that has not begun never will."""

from collections.abc import Sequence
from functools import partial

import click

from stoker_client.cli._deployed import wait_for_end
from stoker_client.cli._each import each_then, end
from stoker_client.cli._session import Session


@click.command()
@click.argument("deployments", nargs=-1, required=True, metavar="DEPLOYMENT...")
@click.option("--force", is_flag=True, help="Do not wait for agents to say that they stopped.")
@click.option("--wait", is_flag=True, help="Wait until it has stopped.")
@click.pass_obj
def command(session: Session, deployments: Sequence[str], force: bool, wait: bool) -> None:
    def cancel(deployment: str) -> None:
        session.client.deployments.cancel(deployment, force=force)

    end(each_then(deployments, cancel, partial(_ended, session) if wait else None))


def _ended(session: Session, deployment: str) -> None:
    left = (
        f"is cancelled, and over once its agent has stopped (`stoker deployment cancel --force {deployment}`: at once)"
    )
    wait_for_end(session.client, deployment, left)
