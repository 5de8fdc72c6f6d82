"""Create a user, with a role in a project.

The command reads the password from standard input. On a terminal, it prompts for the password.
"""

import click

from stoker_client.cli._output import Output, emit_one, output_option
from stoker_client.cli._session import Session
from stoker_client.cli.user._password import password_options, read_password


@click.command()
@click.argument("name")
@click.option("--project", metavar="PROJECT", help="The user's default project.")
@click.option("--role", default="member", show_default=True, help="The role in the project.")
@password_options
@output_option
@click.pass_obj
def command(
    session: Session,
    /,
    *,
    name: str,
    project: str | None,
    role: str,
    password: str | None,
    password_file: str | None,
    output: Output,
) -> None:
    secret = read_password(password, password_file)
    identity = session.client.identity
    project_id = identity.project(project)["id"] if project else None
    user = identity.create_user(name, secret, project_id)
    if project_id:
        identity.grant(user["id"], project_id, role)
    emit_one(output, user, ("id", "name", "enabled", "default_project_id"))
