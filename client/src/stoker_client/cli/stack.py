"""Commands for stacks and their snapshots."""

from __future__ import annotations

import json
import sys
from collections.abc import Callable, Sequence
from functools import partial
from pathlib import Path

import click

from stoker_client import graph_renderer
from stoker_client.cli._groups import Group
from stoker_client.cli._nouns import confirm_deletion, yes_option
from stoker_client.cli._options import contains_option, link_option, print_link, read_text, wait_option
from stoker_client.cli._output import (
    Output,
    echo,
    emit_data,
    emit_list,
    emit_one,
    emit_value,
    explaining_write_errors,
    list_options,
    output_option,
    printable,
)
from stoker_client.cli._session import Batch, Session
from stoker_client.cli._stack_changes import create, emit_result, update
from stoker_client.cli._wait import failure_lines, wait_for_stack
from stoker_client.client import Client
from stoker_client.errors import BadInput, ClientError
from stoker_client.shapes import Stack
from stoker_client.stacks import Operation, follow_events, read_events

stack = Group(commands=[create, update])


_status_option = click.option(
    "--status", metavar="STATUS", help="Only those in this state: CREATE_FAILED, or FAILED after any action."
)


def _is_status(status: str, selected: str | None) -> bool:
    """
    Whether ``status`` (``CREATE_FAILED``) matches ``selected`` (in any case, with or without the action); None matches
    all.
    """
    return selected is None or status == selected.upper() or status.endswith(f"_{selected.upper()}")


def _operate(
    client: Client, stacks: Sequence[str], begin: Callable[[str], Operation], begun: str, status: str, *, wait: bool
) -> None:
    """Begin an operation on each stack: ``begun`` says so after the name. With ``wait``, wait for ``status``."""

    def start(stack: str) -> Operation:
        operation = begin(stack)
        if not wait:
            echo(f"stack {stack}{begun}")
        return operation

    def finish(operation: Operation) -> None:
        wait_for_stack(client, operation, status)
        ended = "deleted" if status == "DELETE_COMPLETE" else f"is {status}"
        echo(f"stack {operation.ref.partition('/')[0]} {ended}")

    with Batch() as batch:
        started = batch.each(stacks, start)
        if wait:
            batch.each(started, finish)


def _add_action(action: str, help: str) -> None:
    """Add the command for an action on complete stacks."""

    @stack.command(action, help=help)
    @click.argument("stacks", nargs=-1, required=True, metavar="STACK...")
    @wait_option
    @click.pass_obj
    def act(session: Session, stacks: Sequence[str], wait: bool) -> None:
        client = session.client
        begin = partial(client.stacks.act, action=action)
        _operate(client, stacks, begin, f": {action} begun", f"{action.upper()}_COMPLETE", wait=wait)


_add_action("check", "Check the resources of stacks.")
_add_action("suspend", "Suspend stacks: run their deployments for this action.")
_add_action("resume", "Resume suspended stacks.")


_FILE = "--output-file"
_file_option = click.option(
    _FILE, type=click.Path(dir_okay=False, path_type=Path), metavar="FILE", help="The file to write."
)


@stack.command("abandon")
@click.argument("stack")
@_file_option
@click.pass_obj
def abandon(session: Session, stack: str, output_file: Path | None) -> None:
    """Delete a stack and keep its resources.

    Prints the data that `stack adopt` needs; --output-file writes the data to a file.
    """
    if output_file is None:
        emit_data("json", session.client.stacks.abandon(stack))
        return
    with explaining_write_errors(output_file, _FILE):  # fail before the stack is abandoned
        output_file.touch(mode=0o600)
    data = session.client.stacks.abandon(stack)
    try:
        with explaining_write_errors(output_file, _FILE):
            output_file.write_text(f"{json.dumps(data, indent=2, ensure_ascii=False)}\n")
    except BadInput:
        emit_data("json", data)  # the stack is gone, so this is the only copy
        raise


@stack.command("adopt")
@click.argument("name")
@click.argument("data", metavar="FILE")
@wait_option
@output_option
@click.pass_obj
def adopt(session: Session, name: str, data: str, wait: bool, output: Output) -> None:
    """Create a stack from the data of an abandoned stack. FILE: - is standard input."""
    operation = session.client.stacks.create({"stack_name": name, "adopt_stack_data": read_text(data, "FILE")})
    if wait:
        wait_for_stack(session.client, operation, "ADOPT_COMPLETE")
    emit_result(output, session.client.stacks.show(operation.ref), outputs=wait)


@stack.command("cancel")
@click.argument("stack")
@click.option("--no-rollback", is_flag=True, help="Keep the changes made so far.")
@click.option("--wait", is_flag=True, help="Show the progress until the stack has stopped; fail if its rollback fails.")
@click.pass_obj
def cancel(session: Session, stack: str, no_rollback: bool, wait: bool) -> None:
    """Stop a running create or update.

    An update is rolled back unless --no-rollback keeps the changes made so far. A create is never rolled back.
    """
    details = session.client.stacks.show(stack, outputs=False)
    ref, action = f"{details['stack_name']}/{details['id']}", details["stack_status"].removesuffix("_IN_PROGRESS")
    is_rolled_back = action == "UPDATE" and not no_rollback
    begin = partial(session.client.stacks.act, ref, "cancel_update" if is_rolled_back else "cancel_without_rollback")
    status = "ROLLBACK_COMPLETE" if is_rolled_back else f"{action}_FAILED"
    _operate(session.client, [stack], lambda _: begin(), ": cancelling", status, wait=wait)


@stack.command("delete")
@click.argument("stacks", nargs=-1, required=True, metavar="STACK...")
@yes_option
@click.option("--wait", is_flag=True, help="Show the progress until the stacks are deleted; fail if a deletion fails.")
@click.pass_obj
def delete_stack(session: Session, stacks: Sequence[str], yes: bool, wait: bool) -> None:
    """Delete stacks and all of their resources."""
    confirm_deletion(f"stack {', '.join(stacks)}", yes=yes)
    client = session.client
    _operate(client, stacks, client.stacks.delete, " is being deleted", "DELETE_COMPLETE", wait=wait)


_EVENTS = ("event_time", "resource_name", "resource_status", "resource_status_reason")


@stack.command("events")
@click.argument("stack")
@click.option("-f", "--follow", is_flag=True, help="Continue until the stack is deleted or Ctrl-C.")
@list_options()
@click.pass_obj
def events(session: Session, stack: str, follow: bool, output: Output) -> None:
    """Show the events of a stack, and with --follow further ones."""
    ref = session.client.stacks.canonical(stack)
    if not follow:
        emit_list(output, session.client.stacks.events(ref), _EVENTS)
        return
    for event in follow_events(session.client.stacks, ref):
        if not output.is_data:
            echo(printable("  ".join(str(event.get(column) or "") for column in _EVENTS)))
        else:
            emit_data(output.form, event, stream=True)


@stack.command("export")
@click.argument("stack")
@click.pass_obj
def export(session: Session, stack: str) -> None:
    """Print the data of a stack that `stack adopt` needs."""
    emit_data("json", session.client.stacks.export(stack))


@stack.command("graph")
@click.argument("stack")
@click.option(
    "--format", "form", type=click.Choice((*graph_renderer.FORMATS, "dot", "json")), default="svg", show_default=True,
    help="An image, which Graphviz draws, Graphviz's own language, or the API's nodes and edges.",
)  # fmt: skip
@click.option(
    "--nested-depth", type=click.IntRange(min=0), default=0, metavar="N", help="Levels of nested stacks to include."
)
@_file_option
@click.pass_obj
def graph(session: Session, stack: str, form: str, nested_depth: int, output_file: Path | None) -> None:
    """Draw a stack's resources with their servers, dependencies, states and times."""
    graph = session.client.stacks.graph(stack, nested_depth=nested_depth)
    if form == "json":
        drawing = f"{json.dumps(graph, indent=2)}\n".encode()
    else:
        text = graph_renderer.dot(graph)
        drawing = text.encode() if form == "dot" else graph_renderer.draw(text, form)
    if output_file is not None:
        with explaining_write_errors(output_file, _FILE):
            output_file.write_bytes(drawing)
    elif form == "png" and sys.stdout.isatty():
        raise click.UsageError("an image is not for a terminal: name a file with --output-file")
    else:
        sys.stdout.buffer.write(drawing)


@stack.command("list")
@_status_option
@contains_option
@list_options()
@click.pass_obj
def list_stacks(session: Session, status: str | None, contains: str | None, output: Output) -> None:
    """List the stacks of the project."""
    stacks = [
        stack for stack in session.client.stacks.all(contains=contains) if _is_status(stack["stack_status"], status)
    ]
    columns = ("id", "stack_name", "stack_status", "creation_time")
    emit_list(output, stacks, columns, wide=("updated_time", "stack_owner", "tags", "parent"))


@stack.command("outputs")
@click.argument("stack")
@click.argument("key", required=False)
@list_options()
@click.pass_obj
def outputs(session: Session, stack: str, key: str | None, output: Output) -> None:
    """Show the outputs of a stack, or the value of one."""
    if key is None:
        outputs = session.client.stacks.show(stack).get("outputs") or []
        error = ["output_error"] if any(entry.get("output_error") for entry in outputs) else []
        emit_list(output, outputs, ("output_key", "output_value", *error, "description"))
        return
    value = session.client.stacks.output(stack, key)
    if value.get("output_error"):
        raise ClientError(f"output {key} has an error: {value['output_error']}")
    emit_value(output, value.get("output_value"))


@stack.command("resources")
@click.argument("stack")
@_status_option
@list_options()
@click.pass_obj
def resources(session: Session, stack: str, status: str | None, output: Output) -> None:
    """List the resources of a stack."""
    resources = [
        resource
        for resource in session.client.stacks.resources(stack)
        if _is_status(resource["resource_status"], status)
    ]
    columns = ("resource_name", "physical_resource_id", "resource_status", "resource_type")
    emit_list(output, resources, columns, wide=("updated_time", "resource_status_reason", "required_by"))


_STACK_FIELDS = (
    "id", "stack_name", "description", "stack_status", "stack_status_reason", "failures", "creation_time",
    "updated_time", "deletion_time", "parameters", "outputs", "tags", "timeout_mins", "disable_rollback",
)  # fmt: skip


@stack.command("show")
@click.argument("stack")
@link_option
@output_option
@click.pass_obj
def show_stack(session: Session, stack: str, link: bool, output: Output) -> None:
    """Show a stack."""
    details = session.client.stacks.show(stack)
    if link:
        print_link(session, "stacks", details["stack_name"], details["id"])
    if output.is_data:
        emit_data(output.form, details)
        return
    outputs = {output["output_key"]: output.get("output_value") for output in details.get("outputs") or []}
    failures = _failures(session, details)
    shown = {**details, "outputs": outputs, **({"failures": failures} if failures else {})}
    emit_one(output, shown, _STACK_FIELDS, text={"failures": "\n".join(failures)})


def _failures(session: Session, stack: Stack) -> list[str]:
    """Return the causes of a failed operation, also of one that has been rolled back."""
    status = stack["stack_status"]
    if not status.startswith("ROLLBACK_") and not status.endswith("_FAILED"):
        return []
    ref = f"{stack['stack_name']}/{stack['id']}"
    events = session.client.stacks.operation_events(Operation(ref))
    return failure_lines(read_events(ref, events))


@stack.command("template")
@click.argument("stack")
@output_option
@click.pass_obj
def template(session: Session, stack: str, output: Output) -> None:
    """Show the template of a stack."""
    emit_data(output.data_form, session.client.stacks.template(stack))


snapshot = Group()


@snapshot.command("create")
@click.argument("stack")
@click.argument("name", required=False)
@output_option
@click.pass_obj
def create_snapshot(session: Session, stack: str, name: str | None, output: Output) -> None:
    """Take a snapshot of a stack."""
    emit_one(output, session.client.stacks.take_snapshot(stack, name), ("id", "name", "status", "creation_time"))


@snapshot.command("delete")
@click.argument("stack")
@click.argument("snapshot")
@yes_option
@click.pass_obj
def delete_snapshot(session: Session, stack: str, snapshot: str, yes: bool) -> None:
    """Delete a snapshot."""
    confirm_deletion(f"snapshot {snapshot} of {stack}", yes=yes)
    session.client.stacks.snapshots(stack).delete(snapshot)
    echo(f"snapshot {snapshot} deleted")


@snapshot.command("list")
@click.argument("stack")
@list_options()
@click.pass_obj
def list_snapshots(session: Session, stack: str, output: Output) -> None:
    """List the snapshots of a stack."""
    emit_list(output, session.client.stacks.snapshots(stack).all(), ("id", "name", "status", "creation_time"))


@snapshot.command("restore")
@click.argument("stack")
@click.argument("snapshot")
@wait_option
@click.pass_obj
def restore_snapshot(session: Session, stack: str, snapshot: str, wait: bool) -> None:
    """Restore a stack from a snapshot."""
    stacks = session.client.stacks
    ref = stacks.canonical(stack)
    operation = stacks.restore(ref, stacks.snapshots(ref).find_id(snapshot))
    if wait:
        wait_for_stack(session.client, operation, "RESTORE_COMPLETE")
    echo(f"stack {stack} {'is restored' if wait else 'is being restored'} to snapshot {snapshot}")
