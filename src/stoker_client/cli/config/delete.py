"""Delete software configs that no deployment uses."""

from collections.abc import Sequence

import click

from stoker_client.cli._batch import delete_each
from stoker_client.cli._confirm import yes_option
from stoker_client.cli._session import Session


@click.command()
@click.argument("configs", nargs=-1, required=True, metavar="CONFIG...")
@yes_option
@click.pass_obj
def command(session: Session, configs: Sequence[str], yes: bool) -> None:
    api = session.client.configs
    delete_each(configs, "config", lambda config: api.delete(api.find_id(config)), yes=yes)
