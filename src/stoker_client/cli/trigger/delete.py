"""Delete triggers that are over, with their deployments and logs."""

from collections.abc import Sequence

import click

from stoker_client.cli._each import each, end
from stoker_client.cli._session import Session


@click.command()
@click.argument("triggers", nargs=-1, required=True, metavar="TRIGGER...")
@click.pass_obj
def command(session: Session, triggers: Sequence[str]) -> None:
    end(each(triggers, session.client.triggers.delete))
