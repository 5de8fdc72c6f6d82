"""References to servers, and the options and arguments that select them."""

from collections.abc import Callable, Sequence
from typing import Any, TypeVar

import click

from stoker_client.cli._session import Session
from stoker_client.client import Client
from stoker_client.errors import BadInput
from stoker_client.references import is_id, is_pattern, is_prefix
from stoker_client.servers import join_selectors
from stoker_client.shapes import Server

F = TypeVar("F", bound=Callable[..., Any])


def server_id(client: Client, ref: str) -> str:
    """Return the id of the server ``ref``. A complete id needs no request: Heat's API has no list of servers."""
    return ref if is_id(ref) else client.servers.show(ref)["id"]


def service_name(client: Client, ref: str) -> str:
    """Return a reference that the service resolves: a name or an id instead of a prefix or STACK/RESOURCE."""
    return ref if _is_resolvable(ref) else client.servers.show(ref)["id"]


def service_names(client: Client, refs: Sequence[str]) -> Sequence[str]:
    """Return references that the service resolves, as ``service_name`` does; a pattern stands for several servers."""
    if all(_is_resolvable(ref) and not is_pattern(ref) for ref in refs):
        return refs
    return [server["id"] for server in client.servers.find(refs)]


def _is_resolvable(ref: str) -> bool:
    return not is_prefix(ref) and "/" not in ref


def selector_option(help: str) -> Callable[[F], F]:
    """Return the option ``--label``. The command receives the texts as ``selectors``."""
    return click.option(
        "-l", "--label", "selectors", multiple=True, metavar="SELECTOR",
        help=f"{help} SELECTOR is a label such as role=web, or a condition such as 'role=web and os.family=debian';"
        " repeat to combine conditions.",
    )  # fmt: skip


label_option = selector_option("All servers that SELECTOR selects.")


def choose_servers(client: Client, refs: Sequence[str], selectors: Sequence[str]) -> list[Server]:
    """Return the servers of ``refs``, or those that ``selectors`` select. Raises BadInput if there is none."""
    if refs:
        return client.servers.find(refs)
    selector = join_selectors(selectors)
    servers = client.servers.all(selector)
    if not servers:
        raise BadInput(
            f"no server matches {selector}; `stoker server list` shows the labels, `stoker server show` the facts"
        )
    return servers


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
