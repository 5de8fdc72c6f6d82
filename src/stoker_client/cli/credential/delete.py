"""Delete application credentials; tokens got by them end at once."""

from collections.abc import Sequence

import click

from stoker_client.cli._each import each, end
from stoker_client.cli._session import Session


@click.command()
@click.argument("credentials", nargs=-1, required=True, metavar="CREDENTIAL...")
@click.pass_obj
def command(session: Session, credentials: Sequence[str]) -> None:
    end(each(credentials, session.client.identity.delete_credential))
