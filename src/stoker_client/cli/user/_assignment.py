"""Options for the scope of a role: a project, or the system, whose only role is that of an administrator."""

from collections.abc import Callable
from typing import Any, TypeVar

import click

F = TypeVar("F", bound=Callable[..., Any])
ROLES = ("admin", "member", "reader")


def place_options(command: F) -> F:
    """Add ``--project`` with ``--role``, or ``--system``, to a command."""
    for option in (
        click.option("--system", is_flag=True, help="Administrator of the whole site: all users, projects and roles."),
        click.option("--role", type=click.Choice(ROLES), help="The role in the project."),
        click.option("--project", metavar="PROJECT", help="The project."),
    ):
        command = option(command)
    return command


def project_of(project: str | None, role: str | None, *, system: bool) -> tuple[str | None, str]:
    """Return the project's name (None for the system) and the role. Raises UsageError for other combinations."""
    if system and not project and role in (None, "admin"):
        return None, "admin"
    if project and role and not system:
        return project, role
    raise click.UsageError("give either --project PROJECT and --role ROLE, or --system")
