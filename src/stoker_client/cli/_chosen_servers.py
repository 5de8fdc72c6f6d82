"""Selects the servers of a command: by name, or by labels and facts."""

from collections.abc import Sequence

import click

from stoker_client.cli._selector_option import selector_option
from stoker_client.cli._session import Session
from stoker_client.cli._start_wait import choose_servers
from stoker_client.references import is_pattern

label_option = selector_option("All servers that SELECTOR selects.")


def chosen_servers(session: Session, refs: Sequence[str], selectors: Sequence[str]) -> Sequence[str]:
    """
    Return ``refs``, or the names of the servers that patterns or ``selectors`` select.

    Raises UsageError for both or neither.
    """
    if bool(refs) == bool(selectors):
        raise click.UsageError("say which servers: either by name, or with --label")
    if any(map(is_pattern, refs)) or selectors:
        return [server["name"] for server in choose_servers(session.client, refs, selectors)]
    return refs
