"""Show the events of a stack, and with --follow further ones."""

import time
from collections.abc import Iterator

import click

from stoker_client.cli._output import Output, echo, emit_data, emit_list, list_options, printable
from stoker_client.cli._session import Session
from stoker_client.errors import NotFound
from stoker_client.shapes import Event
from stoker_client.stacks import Stacks, is_of_stack

COLUMNS = ("event_time", "resource_name", "resource_status", "resource_status_reason")
PAUSE = 1.0


@click.command()
@click.argument("stack")
@click.option("-f", "--follow", is_flag=True, help="Continue until the stack is deleted or Ctrl-C.")
@list_options()
@click.pass_obj
def command(session: Session, stack: str, follow: bool, output: Output) -> None:
    ref = session.client.stacks.canonical(stack)
    if not follow:
        emit_list(output, session.client.stacks.events(ref), COLUMNS)
        return
    for event in _follow(session.client.stacks, ref):
        if not output.is_data:
            echo(printable("  ".join(str(event.get(column) or "") for column in COLUMNS)))
        else:
            emit_data(output.form, event, stream=True)


def _follow(stacks: Stacks, ref: str) -> Iterator[Event]:
    last: str | None = None
    while True:
        try:
            events = stacks.events(ref, after=last, patient=True)
        except NotFound:
            return
        for event in events:
            last = event["id"]
            yield event
            if event["resource_status"] == "DELETE_COMPLETE" and is_of_stack(event, ref):
                return
        time.sleep(PAUSE)
