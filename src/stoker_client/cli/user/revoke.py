"""Revoke a user's role in a project, or with --system the administration of the site."""

import click

from stoker_client.cli._output import echo
from stoker_client.cli._session import Session
from stoker_client.cli.user._assignment import place_options, project_of


@click.command()
@click.argument("user")
@place_options
@click.pass_obj
def command(session: Session, /, *, user: str, project: str | None, system: bool, role: str | None) -> None:
    place, granted = project_of(project, role, system=system)
    session.client.identity.revoke(user, place, granted)
    echo(f"user {user} is no longer {granted} {f'in project {place}' if place else 'of the site'}")
