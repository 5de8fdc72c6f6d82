"""Create a user, with a role in a project.

The password is asked for, or read from standard input."""

import click

from stoker_client.cli._output import Output, emit_one, output_option
from stoker_client.cli._session import Session


@click.command()
@click.argument("name")
@click.option("--project", metavar="PROJECT", help="Their own project.")
@click.option("--role", default="member", show_default=True, help="What they are there.")
@click.password_option(help="Better asked for than given: others see it.")
@output_option
@click.pass_obj
def command(session: Session, /, *, name: str, project: str | None, role: str, password: str, output: Output) -> None:
    identity = session.client.identity
    project_id = identity.project(project)["id"] if project else None
    made = identity.create_user(name, password, project_id)
    if project_id:
        identity.grant(made["id"], project_id, role)
    emit_one(output, made, ("id", "name", "enabled", "default_project_id"))
