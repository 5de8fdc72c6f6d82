"""Asks for confirmation before a deletion."""

import sys

import click

from stoker_client.errors import BadInput, ClientError

yes_option = click.option("-y", "--yes", is_flag=True, help="Do not ask for confirmation.")


def confirm_deletion(what: str, *, yes: bool) -> None:
    """Return if the user confirms the deletion of ``what``, or with ``--yes``. Raises ClientError otherwise."""
    if yes:
        return
    if not sys.stdin.isatty():
        raise BadInput(f"{what} not deleted: not a terminal: use --yes")
    if not click.confirm(f"Delete {what}?", err=True):
        raise ClientError(f"{what} not deleted")
