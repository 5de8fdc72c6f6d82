"""Commands for projects, users, application credentials, and the audit log of what users did."""

from __future__ import annotations

import sys

import click

from stoker_client.cli._groups import Group
from stoker_client.cli._nouns import Noun
from stoker_client.cli._options import read_text, together
from stoker_client.cli._output import Output, Row, echo, emit_list, emit_one, list_options, output_option
from stoker_client.cli._session import Session
from stoker_client.errors import BadInput

_PROJECT_COLUMNS = ("id", "name", "enabled", "description")
_PROJECT = Noun("project", lambda client: client.identity.projects)
project = Group(
    commands=[
        _PROJECT.list("List projects: all for an administrator, else your own.", _PROJECT_COLUMNS, order="name"),
        _PROJECT.delete("Delete empty projects."),
    ]
)


@project.command("create")
@click.argument("name")
@click.option("--description", default="", help="A description.")
@output_option
@click.pass_obj
def create_project(session: Session, name: str, description: str, output: Output) -> None:
    """Create a project."""
    emit_one(
        output, session.client.identity.projects.create({"name": name, "description": description}), _PROJECT_COLUMNS
    )


_USER_COLUMNS = ("id", "name", "enabled", "default_project_id")
_USER = Noun("user", lambda client: client.identity.users)
user = Group(
    commands=[
        _USER.list("List users.", _USER_COLUMNS, order="name"),
        _USER.delete("Delete users; their tokens and credentials become invalid at once."),
    ]
)


_place_options = together([
    click.option("--project", metavar="PROJECT", help="The project."),
    click.option("--role", type=click.Choice(("admin", "member", "reader")), help="The role in the project."),
    click.option("--system", is_flag=True, help="Administrator of the whole site: all users, projects and roles."),
])  # fmt: skip


def _project_of(project: str | None, role: str | None, *, system: bool) -> tuple[str | None, str]:
    """Return the project's name (None for the system) and the role. Raises UsageError for other combinations."""
    if system and not project and role in (None, "admin"):
        return None, "admin"
    if project and role and not system:
        return project, role
    raise click.UsageError("give either --project PROJECT and --role ROLE, or --system")


_password_options = together([
    click.option("--password", metavar="TEXT", help="The password, which other users of the machine can read."),
    click.option("--password-file", metavar="FILE", help="A file with the password; - is standard input."),
])  # fmt: skip


def _read_password(password: str | None, password_file: str | None) -> str:
    """
    Return the password of ``--password`` or ``--password-file``, else from standard input.

    On a terminal, prompts for the password twice. Raises BadInput if the password is empty.
    """
    if password is not None and password_file is not None:
        raise click.UsageError("--password and --password-file exclude each other")
    if password is None:
        if password_file is None and sys.stdin.isatty():
            return str(click.prompt("Password", hide_input=True, confirmation_prompt=True, err=True))
        password = read_text(password_file or "-", "--password-file").removesuffix("\n").removesuffix("\r")
    if not password:
        raise BadInput("the password is empty: write it to standard input, or use --password-file")
    return password


@user.command("create")
@click.argument("name")
@click.option("--project", metavar="PROJECT", help="The user's default project.")
@click.option("--role", default="member", show_default=True, help="The role in the project.")
@_password_options
@output_option
@click.pass_obj
def create_user(
    session: Session, /, *, name: str, project: str | None, role: str, output: Output, **passwords: str | None
) -> None:
    """Create a user, with a role in a project.

    The command reads the password from standard input. On a terminal, it prompts for the password.
    """
    secret = _read_password(**passwords)
    identity = session.client.identity
    project_id = identity.projects.find_id(project) if project else None
    user = identity.users.create({"name": name, "password": secret, "default_project_id": project_id})
    if project_id:
        identity.grant(user["id"], project_id, role)
    emit_one(output, user, _USER_COLUMNS)


def _add_role_command(name: str, help: str, words: str) -> None:
    """Add ``grant`` or ``revoke``; ``words`` say what a user then is."""

    @user.command(name, help=help)
    @click.argument("user")
    @_place_options
    @click.pass_obj
    def change(session: Session, /, *, user: str, project: str | None, system: bool, role: str | None) -> None:
        place, role = _project_of(project, role, system=system)
        identity = session.client.identity
        (identity.grant if name == "grant" else identity.revoke)(user, place, role)
        echo(f"user {user} {words} {role} {f'in project {place}' if place else 'of the site'}")


_add_role_command(
    "grant", "Give a user a role in a project, or with --system make them an administrator of the site.", "is"
)
_add_role_command(
    "revoke", "Revoke a user's role in a project, or with --system the administration of the site.", "is no longer"
)


@user.command("password")
@click.argument("user")
@_password_options
@click.pass_obj
def password(session: Session, /, user: str, **passwords: str | None) -> None:
    """Give a user a new password; all their tokens become invalid.

    The command reads the password from standard input. On a terminal, it prompts for the password.
    """
    session.client.identity.users.change(user, {"password": _read_password(**passwords)})
    echo(f"the password of user {user} is changed")


@user.command("roles")
@click.argument("user")
@list_options()
@click.pass_obj
def roles(session: Session, user: str, output: Output) -> None:
    """List a user's roles in projects, and whether the user administers the site."""
    assignments = session.client.identity.roles(user)
    emit_list(output, [_row(assignment) for assignment in assignments], ("project", "system", "role"))


def _row(assignment: Row) -> Row:
    scope = assignment["scope"]
    project = scope["project"]["name"] if "project" in scope else None
    return {"project": project, "system": "all" if "system" in scope else None, "role": assignment["role"]["name"]}


_CREDENTIAL = Noun("credential", lambda client: client.identity.credentials)
credential = Group(
    commands=[
        _CREDENTIAL.list(
            "List your application credentials.",
            ("id", "name", "project_id", "roles", "expires_at"),
            cells=lambda credential: {"roles": [role["name"] for role in credential["roles"]]},
        ),
        _CREDENTIAL.delete("Delete application credentials; their tokens become invalid at once."),
    ]
)


@credential.command("create")
@click.argument("name")
@click.option("--role", "roles", multiple=True, help="A role of the credential (default: all of your roles).")
@click.option("--expires", metavar="TIME", help="Time of expiry, such as 2030-01-31T12:00:00 (UTC).")
@output_option
@click.pass_obj
def create_credential(session: Session, name: str, roles: tuple[str, ...], expires: str | None, output: Output) -> None:
    """Create an application credential for your project; its secret is not shown again."""
    body = {"name": name, "expires_at": expires, **({"roles": [{"name": role} for role in roles]} if roles else {})}
    credential = session.client.identity.credentials.create(body)
    emit_one(output, credential, ("id", "name", "secret", "project_id", "expires_at"))


audit = Group()


@audit.command("list")
@click.option("--server", metavar="SERVER", help="Only entries of this server: name or id, also of a deleted one.")
@click.option("--stack", metavar="STACK", help="Only entries of this stack: name or id, also of a deleted one.")
@click.option("--user", metavar="NAME", help="Only what this user did.")
@click.option("--object", "about", metavar="NAME", help="Only entries of this server, stack, config …: name or id.")
@click.option("--action", metavar="WORDS", help="Only actions that begin with these words, such as run.")
@click.option("--since", metavar="TIME", help="Only entries since this time, such as 2031-05-06T02:30:00Z.")
@click.option("--until", metavar="TIME", help="Only entries before this time.")
@click.option("--refused", is_flag=True, help="Only what was refused.")
@click.option("--site", is_flag=True, help="The entries of no project: users, projects and failed logins.")
@list_options(limit=100)
@click.pass_obj
def list_audits(
    session: Session,
    /,
    *,
    user: str | None,
    refused: bool,
    site: bool,
    about: str | None,
    output: Output,
    **filters: str | None,
) -> None:
    """List the audit log, newest first: what users did, what ran on servers, and what was refused."""
    entries = (session.client.site_audit if site else session.client.audit).all(
        **filters, object=about, actor=user, outcome="REFUSED" if refused else None, limit=output.first
    )
    emit_list(
        output,
        entries,
        ("time", "actor", "action", "outcome", "server", "stack", "reason"),
        wide=("config", "resource_name", "server_id", "stack_id", "deployment_id"),
        cells=lambda entry: {
            name: entry.get(f"{name}_name") or entry.get(f"{name}_id") for name in ("server", "stack", "config")
        },
    )
