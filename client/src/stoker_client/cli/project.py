"""Projects: each has its own stacks, configs and servers."""

import click

from stoker_client.cli._lazy import Group
from stoker_client.cli._nouns import Noun
from stoker_client.cli._output import Output, emit_one, output_option
from stoker_client.cli._session import Session

_COLUMNS = ("id", "name", "enabled", "description")
_NOUN = Noun("project", lambda client: client.identity.projects)
command = Group(
    commands=[
        _NOUN.list("List projects: all for an administrator, else your own.", _COLUMNS, order="name"),
        _NOUN.delete("Delete empty projects."),
    ]
)


@command.command()
@click.argument("name")
@click.option("--description", default="", help="A description.")
@output_option
@click.pass_obj
def create(session: Session, name: str, description: str, output: Output) -> None:
    """Create a project."""
    emit_one(output, session.client.identity.projects.create({"name": name, "description": description}), _COLUMNS)
