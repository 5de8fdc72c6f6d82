"""Delete software configs that no deployment uses."""

from collections.abc import Sequence

import click

from stoker_client.cli._each import each, end
from stoker_client.cli._session import Session


@click.command()
@click.argument("configs", nargs=-1, required=True, metavar="CONFIG...")
@click.pass_obj
def command(session: Session, configs: Sequence[str]) -> None:
    client = session.client
    end(each(configs, lambda config: client.configs.delete(client.configs.find(config)["id"])))
