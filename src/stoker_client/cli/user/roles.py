"""List a user's roles in projects, and whether the user administers the site."""

from typing import Any

import click

from stoker_client.cli._output import Output, emit_list, list_options
from stoker_client.cli._session import Session


@click.command()
@click.argument("user")
@list_options()
@click.pass_obj
def command(session: Session, user: str, output: Output) -> None:
    assignments = session.client.identity.roles(user)
    emit_list(output, [_row(assignment) for assignment in assignments], ("project", "system", "role"))


def _row(assignment: dict[str, Any]) -> dict[str, Any]:
    scope = assignment["scope"]
    project = scope["project"]["name"] if "project" in scope else None
    return {"project": project, "system": "all" if "system" in scope else None, "role": assignment["role"]["name"]}
