"""Snapshots of stacks: take, list, restore and delete them."""

from __future__ import annotations

import click

from stoker_client.cli._batch import confirm_deletion, yes_option
from stoker_client.cli._lazy import Group
from stoker_client.cli._options import wait_option
from stoker_client.cli._output import Output, echo, emit_list, emit_one, list_options, output_option
from stoker_client.cli._session import Session
from stoker_client.cli._stack_wait import wait_for

command = Group()


@command.command("create")
@click.argument("stack")
@click.argument("name", required=False)
@output_option
@click.pass_obj
def create(session: Session, stack: str, name: str | None, output: Output) -> None:
    """Take a snapshot of a stack."""
    emit_one(output, session.client.stacks.take_snapshot(stack, name), ("id", "name", "status", "creation_time"))


@command.command("delete")
@click.argument("stack")
@click.argument("snapshot")
@yes_option
@click.pass_obj
def delete(session: Session, stack: str, snapshot: str, yes: bool) -> None:
    """Delete a snapshot."""
    confirm_deletion(f"snapshot {snapshot} of {stack}", yes=yes)
    stacks = session.client.stacks
    ref = stacks.canonical(stack)
    stacks.delete_snapshot(ref, stacks.snapshot_id(ref, snapshot))
    echo(f"snapshot {snapshot} deleted")


@command.command("list")
@click.argument("stack")
@list_options()
@click.pass_obj
def list_(session: Session, stack: str, output: Output) -> None:
    """List the snapshots of a stack."""
    emit_list(output, session.client.stacks.snapshots(stack), ("id", "name", "status", "creation_time"))


@command.command("restore")
@click.argument("stack")
@click.argument("snapshot")
@wait_option
@click.pass_obj
def restore(session: Session, stack: str, snapshot: str, wait: bool) -> None:
    """Restore a stack from a snapshot."""
    ref = session.client.stacks.canonical(stack)
    operation = session.client.stacks.restore(ref, session.client.stacks.snapshot_id(ref, snapshot))
    if wait:
        wait_for(session.client, operation, "RESTORE_COMPLETE")
    echo(f"stack {stack} {'is restored' if wait else 'is being restored'} to snapshot {snapshot}")
