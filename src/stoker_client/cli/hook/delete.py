"""Delete versions of stored hooks. Later runs of configs that use them fail where no agent has them."""

from collections.abc import Sequence

import click

from stoker_client.cli._confirm import yes_option
from stoker_client.cli._session import Session
from stoker_client.cli._versions import delete_versions, versioned_name


@click.command()
@click.argument("hooks", type=versioned_name, nargs=-1, required=True, metavar="NAME/VERSION...")
@yes_option
@click.pass_obj
def command(session: Session, hooks: Sequence[tuple[str, int]], yes: bool) -> None:
    delete_versions(hooks, "hook", session.client.hooks.delete, yes=yes)
