"""Doing one thing to several objects: one that fails does not keep the others from being done."""

from collections.abc import Callable, Iterable

import click

from stoker_client.errors import ClientError


def each(refs: Iterable[str], act: Callable[[str], None]) -> bool:
    """Call ``act`` on each of ``refs``, telling failures at once; whether there was none."""
    fine = True
    for ref in refs:
        try:
            act(ref)
        except ClientError as problem:
            click.echo(f"stoker: {problem}", err=True)
            fine = False
    return fine


def each_then(refs: Iterable[str], act: Callable[[str], None], then: Callable[[str], None] | None) -> bool:
    """``then`` only once ``act`` was called on all, where that did not fail: what it waits for keeps none waiting."""
    done: list[str] = []

    def noted(ref: str) -> None:
        act(ref)
        done.append(ref)

    fine = each(refs, noted)
    return (then is None or each(done, then)) and fine


def end(fine: bool) -> None:
    """End the command with the exit code of what ``each`` found; the failures are told already."""
    if not fine:
        raise click.exceptions.Exit(1)
