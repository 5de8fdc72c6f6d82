"""Delete stacks and everything they made."""

import sys
from collections.abc import Sequence

import click

from stoker_client.cli._each import each, end
from stoker_client.cli._session import Session
from stoker_client.errors import ClientError


@click.command()
@click.argument("stacks", nargs=-1, required=True, metavar="STACK...")
@click.option("-y", "--yes", is_flag=True, help="Do not ask.")
@click.option("--wait", is_flag=True, help="Watch until they are gone; fail if one stays.")
@click.pass_obj
def command(session: Session, stacks: Sequence[str], yes: bool, wait: bool) -> None:
    if not yes:
        _ask(stacks)
    started: list[str] = []
    fine = each(stacks, lambda stack: started.append(_delete(session, stack)))
    if wait:
        fine = _wait(session, started) and fine
    end(fine)


def _ask(stacks: Sequence[str]) -> None:
    if not sys.stdin.isatty():
        raise ClientError("nothing is deleted: there is nobody to ask, so say --yes")
    if not click.confirm(f"Delete {', '.join(stacks)}?", err=True):
        raise ClientError("nothing is deleted")


def _delete(session: Session, stack: str) -> str:
    ref = session.client.stacks.canonical(stack)
    session.client.stacks.delete(ref)
    return ref


def _wait(session: Session, refs: Sequence[str]) -> bool:
    from stoker_client.cli._waiting import wait_deleted  # rich: only for those who watch

    return each(refs, lambda ref: wait_deleted(session.client, ref))
