"""Cancel triggers: what has not begun never will, what runs is told to stop."""

from collections.abc import Sequence

import click

from stoker_client.cli._each import each, end
from stoker_client.cli._session import Session
from stoker_client.cli._trigger_result import leaving


@click.command()
@click.argument("triggers", nargs=-1, required=True, metavar="TRIGGER...")
@click.option("--force", is_flag=True, help="Do not wait for agents to say that they stopped.")
@click.option("--wait", is_flag=True, help="Watch until everything has stopped.")
@click.pass_obj
def command(session: Session, triggers: Sequence[str], force: bool, wait: bool) -> None:
    end(each(triggers, lambda trigger: _cancel(session, trigger, force, wait)))


def _cancel(session: Session, trigger: str, force: bool, wait: bool) -> None:
    session.client.triggers.cancel(trigger, force=force)
    if wait:
        with leaving(trigger):
            from stoker_client.cli._trigger_follow import follow  # rich: only for those who watch

            follow(session.client, trigger)
