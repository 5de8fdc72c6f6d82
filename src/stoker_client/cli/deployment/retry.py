"""Run failed deployments again, in place: with the same config and inputs, and the same id."""

from collections.abc import Sequence

import click

from stoker_client.cli._deployed import wait_for
from stoker_client.cli._each import each, end
from stoker_client.cli._session import Session


@click.command()
@click.argument("deployments", nargs=-1, required=True, metavar="DEPLOYMENT...")
@click.option("--wait", is_flag=True, help="Wait until it is done; fail if it fails.")
@click.pass_obj
def command(session: Session, deployments: Sequence[str], wait: bool) -> None:
    fine = each(deployments, lambda deployment: _retry(session, deployment))
    if wait:
        fine = each(deployments, lambda deployment: _done(session, deployment)) and fine
    end(fine)


def _retry(session: Session, deployment: str) -> None:
    session.client.deployments.retry(deployment)


def _done(session: Session, deployment: str) -> None:
    wait_for(session.client, deployment)
