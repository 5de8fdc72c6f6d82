"""Delete ended triggers, with their deployments and logs."""

from collections.abc import Sequence

import click

from stoker_client.cli._batch import delete_each
from stoker_client.cli._confirm import yes_option
from stoker_client.cli._session import Session


@click.command()
@click.argument("triggers", nargs=-1, required=True, metavar="TRIGGER...")
@yes_option
@click.pass_obj
def command(session: Session, triggers: Sequence[str], yes: bool) -> None:
    api = session.client.triggers
    delete_each(triggers, "trigger", lambda trigger: api.delete(api.find_id(trigger)), yes=yes)
