"""Application credentials: logins of programs, limited to the roles that you choose."""

import click

from stoker_client.cli._lazy import Group
from stoker_client.cli._nouns import Noun
from stoker_client.cli._output import Output, emit_one, output_option
from stoker_client.cli._session import Session

_NOUN = Noun("credential", lambda client: client.identity.credentials)
command = Group(
    commands=[
        _NOUN.list(
            "List your application credentials.",
            ("id", "name", "project_id", "roles", "expires_at"),
            cells=lambda credential: {"roles": [role["name"] for role in credential["roles"]]},
        ),
        _NOUN.delete("Delete application credentials; their tokens become invalid at once."),
    ]
)


@command.command()
@click.argument("name")
@click.option("--role", "roles", multiple=True, help="A role of the credential (default: all of your roles).")
@click.option("--expires", metavar="TIME", help="Time of expiry, such as 2030-01-31T12:00:00 (UTC).")
@output_option
@click.pass_obj
def create(session: Session, name: str, roles: tuple[str, ...], expires: str | None, output: Output) -> None:
    """Create an application credential for your project; its secret is not shown again."""
    body = {"name": name, "expires_at": expires, **({"roles": [{"name": role} for role in roles]} if roles else {})}
    credential = session.client.identity.credentials.create(body)
    emit_one(output, credential, ("id", "name", "secret", "project_id", "expires_at"))
