"""Completion of names in the shell, for arguments and options whose metavar is a kind of object."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from functools import partial
from typing import TYPE_CHECKING

import click
from click.shell_completion import CompletionItem

from stoker_client.cli._session import Session

if TYPE_CHECKING:
    from stoker_client.client import Client
    from stoker_client.shapes import Deployment

#: By metavar: the names that the service has.
_NAMES: Mapping[str, Callable[[Client], Iterable[str | None]]] = {
    "CONFIG": lambda client: (config["name"] for config in client.configs.all()),
    "CREDENTIAL": lambda client: (credential["name"] for credential in client.identity.credentials.all()),
    "DEPLOYMENT": lambda client: map(_name_of, client.deployments.all()),
    "ENROLLMENT": lambda client: (enrollment["id"] for enrollment in client.enrollments.all()),
    "PROJECT": lambda client: (project["name"] for project in client.identity.projects.all()),
    "RELAY": lambda client: (relay["name"] for relay in client.relays.all()),
    "SCHEDULE": lambda client: (schedule["name"] for schedule in client.schedules.all()),
    "SERVER": lambda client: (server["name"] for server in client.servers.all()),
    "STACK": lambda client: (stack["stack_name"] for stack in client.stacks.all()),
    "TRIGGER": lambda client: (trigger["name"] for trigger in client.triggers.all(limit=100)),
    "USER": lambda client: (user["name"] for user in client.identity.users.all()),
}


def add_names(command: click.Command) -> None:
    """Let the shell complete the names of objects in the command's arguments and options."""
    for param in command.params:
        metavar = (param.metavar or param.human_readable_name).strip("[].")
        if metavar in _NAMES:
            param.shell_complete = partial(_complete, metavar)  # type: ignore[method-assign]  # click's own hook


def _complete(metavar: str, ctx: click.Context, incomplete: str) -> list[CompletionItem]:
    session = ctx.find_object(Session)
    assert session is not None
    session.cloud = ctx.find_root().params.get("os_cloud")
    try:
        with ctx.scope(cleanup=False):
            names = {name for name in _NAMES[metavar](session.client) if name}
    except Exception:  # a shell has no place for an error: the command itself will show it
        return []
    return [CompletionItem(name) for name in sorted(names) if name.startswith(incomplete)]


def _name_of(deployment: Deployment) -> str | None:
    """Return ``STACK/RESOURCE``; other deployments have no name that is theirs alone."""
    if not deployment.get("resource_name"):
        return None
    return f"{deployment.get('stack_name')}/{deployment['resource_name']}"
