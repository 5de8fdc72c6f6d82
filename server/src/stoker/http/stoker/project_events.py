"""The events of a whole project: its overview, and changes of its lists without the objects."""

from __future__ import annotations

from collections.abc import Collection
from typing import TYPE_CHECKING

from msgspec.structs import replace

from stoker.http.event_stream import Batch, Event
from stoker.http.stoker import overview
from stoker.http.stoker.servers import list_states
from stoker.model.server import Server
from stoker.store import servers
from stoker.store.notifier import project_topic, server_topic
from stoker.store.tx import Tx

if TYPE_CHECKING:
    from stoker.http.app import App

_NOUNS = ("servers", "stacks", "triggers", "deployments")
#: Pauses between two reads in seconds: the overview reads the states of all servers.
_OVERVIEW_SECONDS, _LIST_SECONDS = 2.0, 0.5


class OverviewReader:
    """The event ``overview``, when one of its numbers has changed."""

    is_repeatable = True
    pause = _OVERVIEW_SECONDS

    def __init__(self, app: App, project: str) -> None:
        self._app, self._project = app, project
        self._last: overview.OverviewState | None = None

    def topics(self) -> Collection[str]:
        return [project_topic(self._project, noun) for noun in _NOUNS]

    def read(self, tx: Tx, _notified: Collection[str] | None = None) -> Batch:
        current = overview.read(self._app, self._project, tx)
        if current == self._last:
            return Batch()
        self._last = current
        return Batch([Event("overview", current)])


class ListReader:
    """
    The event ``changed``, when an object of a list was added, changed or deleted, or a server's state has changed.

    The first read has none: a client reads the list after the stream has begun.
    """

    is_repeatable = True
    pause = _LIST_SECONDS

    def __init__(self, app: App, project: str, noun: str) -> None:
        self._app, self._project, self._noun = app, project, noun
        #: The states of servers, which depend on the time, at the last complete read.
        self._states: int | None = None
        self._is_first = True

    def topics(self) -> Collection[str]:
        return (project_topic(self._project, self._noun),)

    def read(self, tx: Tx, notified: Collection[str] | None = None) -> Batch:
        is_first, self._is_first = self._is_first, False
        has_changed = bool(notified)
        if notified is None and self._noun == "servers":
            before, self._states = self._states, hash(tuple(list_states(self._app, self._project, tx)))
            has_changed = before != self._states
        return Batch([Event("changed", {})] if has_changed and not is_first else [])


class ServerReader:
    """The event ``changed``, when a server's state has changed, or its document: a run begins, or has ended."""

    is_repeatable = True
    pause = _LIST_SECONDS

    def __init__(self, app: App, project: str, id: str) -> None:
        self._app, self._project, self._id = app, project, id
        self._last: tuple[Server, str] | None = None

    def topics(self) -> Collection[str]:
        return (server_topic(self._id), project_topic(self._project, "servers"))

    def read(self, tx: Tx, notified: Collection[str] | None = None) -> Batch:
        server = servers.get(tx, self._id, self._project)
        status = server.status(tx.now, self._app.settings.offline_after)
        before, self._last = self._last, (replace(server, last_seen=None), status)
        has_changed = before is not None and (before != self._last or server_topic(self._id) in (notified or ()))
        return Batch([Event("changed", {})] if has_changed else [])
