"""Cancel triggers: what has not begun never will, what runs is told to stop."""

from collections.abc import Sequence
from functools import partial

import click

from stoker_client.cli._each import each_then, end
from stoker_client.cli._session import Session
from stoker_client.cli._trigger_result import leaving


@click.command()
@click.argument("triggers", nargs=-1, required=True, metavar="TRIGGER...")
@click.option("--force", is_flag=True, help="Do not wait for agents to say that they stopped.")
@click.option("--wait", is_flag=True, help="Watch until everything has stopped.")
@click.pass_obj
def command(session: Session, triggers: Sequence[str], force: bool, wait: bool) -> None:
    def cancel(trigger: str) -> None:
        session.client.triggers.cancel(trigger, force=force)

    end(each_then(triggers, cancel, partial(_watch, session) if wait else None))


def _watch(session: Session, trigger: str) -> None:
    with leaving(
        f"trigger {trigger} is cancelled, and over once its agents have stopped: "
        f"`stoker trigger show --follow {trigger}` shows it, `stoker trigger cancel --force {trigger}` waits for none"
    ):
        from stoker_client.cli._trigger_follow import follow  # rich: only for those who watch

        follow(session.client, trigger)
