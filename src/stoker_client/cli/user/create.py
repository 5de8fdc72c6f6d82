"""Create a user, with a role in a project.

The command prompts for the password, or reads it from standard input."""

import click

from stoker_client.cli._output import Output, emit_one, output_option
from stoker_client.cli._session import Session


@click.command()
@click.argument("name")
@click.option("--project", metavar="PROJECT", help="The user's default project.")
@click.option("--role", default="member", show_default=True, help="The role in the project.")
@click.password_option(
    help="Other users of the machine can read a command line: without this option, the command prompts."
)
@output_option
@click.pass_obj
def command(session: Session, /, *, name: str, project: str | None, role: str, password: str, output: Output) -> None:
    identity = session.client.identity
    project_id = identity.project(project)["id"] if project else None
    user = identity.create_user(name, password, project_id)
    if project_id:
        identity.grant(user["id"], project_id, role)
    emit_one(output, user, ("id", "name", "enabled", "default_project_id"))
