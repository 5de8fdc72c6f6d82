"""Delete EC2 credentials; their signatures become invalid at once."""

from collections.abc import Sequence

import click

from stoker_client.cli._batch import delete_each
from stoker_client.cli._confirm import yes_option
from stoker_client.cli._session import Session


@click.command()
@click.argument("keys", nargs=-1, required=True, metavar="ACCESS...")
@yes_option
@click.pass_obj
def command(session: Session, keys: Sequence[str], yes: bool) -> None:
    delete_each(keys, "EC2 credential", session.client.identity.delete_ec2_credential, yes=yes)
