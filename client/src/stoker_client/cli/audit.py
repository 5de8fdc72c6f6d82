"""The audit log: who requested what, and what was decided."""

import click

from stoker_client.cli._lazy import Group
from stoker_client.cli._output import Output, emit_list, list_options
from stoker_client.cli._session import Session

command = Group()


@command.command("list")
@click.option("--server", metavar="SERVER", help="Only entries of this server: name or id, also of a deleted one.")
@click.option("--stack", metavar="STACK", help="Only entries of this stack: name or id, also of a deleted one.")
@click.option("--user", metavar="NAME", help="Only what this user did.")
@click.option("--refused", is_flag=True, help="Only what was refused.")
@click.option("--site", is_flag=True, help="The entries of no project: users, projects and failed logins.")
@list_options(limit=100)
@click.pass_obj
def list_(
    session: Session, server: str | None, stack: str | None, user: str | None, refused: bool, site: bool, output: Output
) -> None:
    """List the audit log, newest first: what users did, what ran on servers, and what was refused."""
    entries = (session.client.site_audit if site else session.client.audit).all(
        server=server, stack=stack, actor=user, outcome="REFUSED" if refused else None, limit=output.first
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
