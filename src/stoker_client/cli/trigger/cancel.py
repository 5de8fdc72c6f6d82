"""Cancel triggers: queued runs do not start, active runs are stopped."""

from collections.abc import Sequence

import click

from stoker_client.cli._batch import Batch
from stoker_client.cli._output import echo
from stoker_client.cli._session import Session
from stoker_client.cli._trigger_result import explaining_interrupt


@click.command()
@click.argument("triggers", nargs=-1, required=True, metavar="TRIGGER...")
@click.option("--force", is_flag=True, help="Do not wait for the agents' confirmation.")
@click.option("--wait", is_flag=True, help="Show the progress until all runs have stopped.")
@click.pass_obj
def command(session: Session, triggers: Sequence[str], force: bool, wait: bool) -> None:
    client, batch = session.client, Batch()

    def cancel(trigger: str) -> str:
        id_ = client.triggers.cancel(client.triggers.find_id(trigger), force=force)["id"]
        echo(f"trigger {trigger} cancelled")
        return id_

    cancelled = batch.each(triggers, cancel)
    if wait:  # after all cancellations, so that waiting delays none of them
        batch.each(cancelled, lambda id_: _watch(session, id_))
    batch.exit()


def _watch(session: Session, trigger: str) -> None:
    with explaining_interrupt(
        f"trigger {trigger} is cancelled, and over once its agents have stopped: "
        f"`stoker trigger show --follow {trigger}` shows it, `stoker trigger cancel --force {trigger}` waits for none"
    ):
        # imported here because rich is slow, and only watching needs it
        from stoker_client.cli._trigger_follow import follow

        follow(session.client, trigger)
