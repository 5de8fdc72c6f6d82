"""Delete EC2 credentials; what is signed with them is refused at once."""

from collections.abc import Sequence

import click

from stoker_client.cli._each import each, end
from stoker_client.cli._session import Session


@click.command()
@click.argument("keys", nargs=-1, required=True, metavar="ACCESS...")
@click.pass_obj
def command(session: Session, keys: Sequence[str]) -> None:
    end(each(keys, session.client.identity.delete_ec2_credential))
