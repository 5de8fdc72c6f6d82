"""What the commands share that do something to a whole stack."""

from collections.abc import Sequence

import click

from stoker_client.cli._each import each, end
from stoker_client.cli._session import Session


def acting(action: str, ends_as: str) -> click.Command:
    """A command that starts ``action`` on stacks and, with --wait, watches until they are ``ends_as``."""

    @click.command()
    @click.argument("stacks", nargs=-1, required=True, metavar="STACK...")
    @click.option("--wait", is_flag=True, help="Watch until it is done; fail if it fails.")
    @click.pass_obj
    def command(session: Session, stacks: Sequence[str], wait: bool) -> None:
        started: list[str] = []

        def start(stack: str) -> None:
            ref = session.client.stacks.canonical(stack)
            session.client.stacks.act(ref, action)
            started.append(ref)

        fine = each(stacks, start)
        if wait:
            from stoker_client.cli._waiting import wait_for  # rich: only for those who watch

            fine = each(started, lambda ref: wait_for(session.client, ref, ends_as)) and fine
        end(fine)

    return command
