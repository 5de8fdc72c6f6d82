"""Revoke tokens; servers that were enrolled with them keep their keys."""

from collections.abc import Sequence

import click

from stoker_client.cli._batch import delete_each
from stoker_client.cli._confirm import yes_option
from stoker_client.cli._session import Session


@click.command()
@click.argument("enrollments", nargs=-1, required=True, metavar="ENROLLMENT...")
@yes_option
@click.pass_obj
def command(session: Session, enrollments: Sequence[str], yes: bool) -> None:
    delete_each(enrollments, "enrollment", session.client.enrollments.delete, yes=yes)
