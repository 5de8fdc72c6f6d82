"""/v1/{project}/events: one stream of the events of several subjects, and readers of the subjects (Stoker's own)."""

from __future__ import annotations

import re
from collections.abc import Callable, Collection, Mapping
from dataclasses import replace
from typing import TYPE_CHECKING, Annotated, Literal

from msgspec import Meta, structs

from stoker.http import event_stream
from stoker.http.contracts import Query, operation
from stoker.http.event_stream import Batch, Event, Reader, format_cursor, parse_cursor, parse_number
from stoker.http.request import RequestContext, Response
from stoker.http.stoker import overview
from stoker.http.stoker.logs import DeploymentReader
from stoker.http.stoker.servers import list_states
from stoker.http.stoker.trigger_events import TriggerReader
from stoker.model.errors import Invalid
from stoker.model.server import Server
from stoker.model.stack import Event as StoredEvent
from stoker.stacks.engine.session import STACK_TYPE
from stoker.store import events, servers, stacks
from stoker.store.notifier import ALL, project_topic, report_topic, server_topic, stack_topic
from stoker.store.rows import heat_time
from stoker.store.tx import Tx

if TYPE_CHECKING:
    from stoker.http.app import App

EventKind = Literal[
    "target", "state", "trigger", "log", "progress", "status", "stack", "resource", "overview", "changed"
]
_SUBJECT = re.compile(r"(trigger|deployment|stack|server):[\w-]{1,64}|overview|servers|stacks|triggers", re.ASCII)
_SUBJECTS = "trigger:<id>, deployment:<id>, stack:<id>, server:<id>, overview, servers, stacks, triggers"
#: Subjects of one stream.
_MOST_SUBJECTS = 16
#: Subjects whose changes concern the overview.
_NOUNS = ("servers", "stacks", "triggers", "deployments")
#: Pauses between two reads in seconds: the overview reads the states of all servers.
_OVERVIEW_SECONDS, _LIST_SECONDS = 2.0, 0.5
#: Events of a stack in one read.
_PAGE = 500


class EventQuery(Query):
    subject: Annotated[
        tuple[str, ...],
        Meta(
            max_length=_MOST_SUBJECTS,
            description=f"What to follow, up to {_MOST_SUBJECTS} of: {_SUBJECTS}",
        ),
    ] = ()
    events: Annotated[
        tuple[EventKind, ...],
        Meta(
            description="The events to send; by default all except state. target: a trigger's server with its run;"
            " state: the same without values"
        ),
    ] = ()


@operation(200, str, media_type="text/event-stream")
async def follow(request: RequestContext, query: EventQuery) -> Response:
    """
    Stream the events of several subjects until all of them have ended.

    Server-sent events, each with its `subject`: those of the query as they occur, and `end` when no more events of a
    subject can follow. The first event is `hello`. The ids are cursors over all subjects: a stream that continues after
    one with Last-Event-ID sends what has changed since. `resync` means that the cursor is too old or unknown, so that
    the client has to read the subject again; the targets of a trigger follow by themselves. Cursors of lists, joined
    by commas, are a cursor. The subjects `server`, `servers`, `stacks` and `triggers` have the event `changed`
    without the objects, and no cursors: read the list after `hello`.
    """
    if not query.subject:
        raise Invalid("subject: name what to follow, such as trigger:<id>")
    subjects = sorted(set(query.subject))
    after = request.raw.headers.get("last-event-id", "")
    reader = SubjectsReader({name: _open(request, name, query, after) for name in subjects}, after)
    return await event_stream.reply(request, " ".join([*subjects, "|", *sorted(query.events)]), after, reader)


def _open(request: RequestContext, subject: str, query: EventQuery, after: str) -> Reader:
    """Return the reader of a subject. Raises Invalid."""
    if not _SUBJECT.fullmatch(subject):
        raise Invalid(f"subject: {subject!r:.100} is not one of {_SUBJECTS}")
    noun, _, id = subject.partition(":")
    if noun == "overview":
        return OverviewReader(request.app, request.project)
    if not id:
        return ListReader(request.app, request.project, noun)
    if noun == "server":
        return ServerReader(request.app, request.project, id)
    make = _READERS[noun]
    return make(id, request.project, parse_cursor(after, [subject]).get(subject, ""), frozenset(query.events))


class SubjectsReader(Reader):
    """The position of a stream among the events of several subjects."""

    def __init__(self, readers: Mapping[str, Reader], after: str = "") -> None:
        """``readers`` by subject; ``after`` is the cursor of which they know their parts."""
        super().__init__()
        self._readers = dict(readers)
        self._positions = parse_cursor(after, readers)
        self.is_repeatable = all(reader.is_repeatable for reader in readers.values())
        self.pause = min((reader.pause for reader in readers.values()), default=event_stream.PAUSE_SECONDS)
        #: Subjects that have more events already.
        self._more: set[str] = set()

    def topics(self) -> Collection[str]:
        return {topic for reader in self._readers.values() for topic in reader.topics()}

    def read(self, tx: Tx, notified: Collection[str] | None) -> Batch:
        """Return the next events of the subjects that were notified. A subject that has ended is read no more."""
        result: list[Event] = []
        for subject, reader in list(self._readers.items()):
            concerned = None if notified is None else {*notified} & {*reader.topics(), ALL}
            if concerned is not None and not concerned and subject not in self._more:
                continue
            batch = reader.read(tx, concerned)
            result += [self._address(event, subject) for event in batch.events]
            (self._more.add if batch.more else self._more.discard)(subject)
            if batch.over:
                del self._readers[subject]
        return Batch(result, over=not self._readers, more=bool(self._more))

    def _address(self, event: Event, subject: str) -> Event:
        """Return the event with its subject, and with a cursor over all subjects."""
        if event.id is None:
            return replace(event, subject=subject)
        self._positions[subject] = event.id
        return replace(event, subject=subject, id=format_cursor(self._positions))


class OverviewReader(Reader):
    """The event ``overview``, when one of its numbers has changed."""

    pause = _OVERVIEW_SECONDS

    def __init__(self, app: App, project: str) -> None:
        super().__init__(("overview",), [project_topic(project, noun) for noun in _NOUNS])
        self._app, self._project = app, project

    def read(self, tx: Tx, _notified: Collection[str] | None = None) -> Batch:
        return Batch(self.changes("overview", overview.read(self._app, self._project, tx)))


class ListReader(Reader):
    """
    The event ``changed``, when an object of a list was added, changed or deleted, or a server's state has changed.

    The first read has none: a client reads the list after the stream has begun.
    """

    pause = _LIST_SECONDS

    def __init__(self, app: App, project: str, noun: str) -> None:
        super().__init__(topics=(project_topic(project, noun),))
        self._app, self._project, self._noun = app, project, noun
        #: The states of servers, which depend on the time, at the last complete read.
        self._states: int | None = None
        self._is_first = True

    def read(self, tx: Tx, notified: Collection[str] | None = None) -> Batch:
        is_first, self._is_first = self._is_first, False
        has_changed = bool(notified)
        if notified is None and self._noun == "servers":
            before, self._states = self._states, hash(tuple(list_states(self._app, self._project, tx)))
            has_changed = before != self._states
        return Batch([Event("changed", {})] if has_changed and not is_first else [])


class ServerReader(Reader):
    """The event ``changed``, when a server's state has changed, or its document: a run begins, or has ended."""

    pause = _LIST_SECONDS

    def __init__(self, app: App, project: str, id: str) -> None:
        self._document_topics = {server_topic(id), report_topic(id)}
        super().__init__(topics=(*self._document_topics, project_topic(project, "servers")))
        self._app, self._project, self._id = app, project, id
        self._state: tuple[Server, str] | None = None

    def read(self, tx: Tx, notified: Collection[str] | None = None) -> Batch:
        server = servers.get(tx, self._id, self._project)
        status = server.status(tx.now, self._app.settings.offline_after)
        before, self._state = self._state, (structs.replace(server, last_seen=None), status)
        has_new_document = not self._document_topics.isdisjoint(notified or ())
        has_changed = before is not None and (before != self._state or has_new_document)
        return Batch([Event("changed", {})] if has_changed else [])


class StackReader(Reader):
    """
    The position of a stream among the events of a stack: ``stack`` when its state changes, ``resource`` for each event.

    A position is the number of the last event that was read. Without one, the stream begins with the events to come.
    """

    def __init__(self, id: str, project: str, after: str, kinds: frozenset[str] = frozenset()) -> None:
        super().__init__(kinds or ("stack", "resource"), (stack_topic(id),))
        self._id, self._project = id, project
        self._after = parse_number(after)
        self._is_first = True

    def read(self, tx: Tx, _notified: Collection[str] | None = None) -> Batch:
        """Return the next events; ``end`` follows the deletion of the stack. Raises EntityNotFound."""
        stack = stacks.get(tx, self._id, self._project)
        result = self._start(tx) if self._is_first else []
        page = events.list_after(tx, stack.id, self._after or 0, _PAGE)
        self._after = page[-1].seq if page else self._after
        if "resource" in self._kinds:
            result += [Event("resource", _serialize(event)) for event in page if event.resource_type != STACK_TYPE]
        more, over = len(page) == _PAGE, stack.deleted_at is not None and len(page) < _PAGE
        state = {
            "id": stack.id,
            "stack_name": stack.name,
            "stack_status": f"{stack.action}_{stack.status}",
            "stack_status_reason": stack.reason,
            "deleted": stack.deleted_at is not None,
        }
        result += self.changes("stack", state)
        if over:
            result.append(Event("end", state))
        if result:  # a stream that ends within the batch continues before it
            result[-1] = replace(result[-1], id=str(self._after))
        return Batch(result, over, more)

    def _start(self, tx: Tx) -> list[Event]:
        self._is_first = False
        last = events.last_position(tx, self._id) or 0
        if self._after is None or self._after == last or events.has_position(tx, self._id, self._after):
            self._after = last if self._after is None else self._after
            return []
        self._after = last
        return [Event("resync", {"reason": "the cursor is too old: read the stack again"})]


def _serialize(event: StoredEvent) -> dict[str, str | None]:
    """Return the state of a resource after one of the stack's events."""
    return {
        "event_id": event.id,
        "resource_name": event.resource_name,
        "physical_resource_id": event.physical_id,
        "resource_status": f"{event.action}_{event.status}",
        "resource_status_reason": event.reason,
        "event_time": heat_time(event.at),
    }


#: Return a reader by the id, the project, the position and the kinds of events; no kinds: the usual ones.
_READERS: Mapping[str, Callable[[str, str, str, frozenset[str]], Reader]] = {
    "trigger": TriggerReader,
    "deployment": DeploymentReader,
    "stack": StackReader,
}
