"""/v1/{project}/events: one stream of the events of several subjects (Stoker's own)."""

from __future__ import annotations

import re
from collections.abc import Callable, Collection, Mapping
from dataclasses import replace
from typing import Annotated, Literal

from msgspec import Meta

from stoker.http import event_stream
from stoker.http.contracts import operation
from stoker.http.event_stream import Batch, Event, Reader
from stoker.http.fields import Query
from stoker.http.request import RequestContext, Response
from stoker.http.stoker import cursors
from stoker.http.stoker.logs import DeploymentReader
from stoker.http.stoker.project_events import ListReader, OverviewReader, ServerReader
from stoker.http.stoker.stack_events import StackReader
from stoker.http.stoker.trigger_events import TriggerReader
from stoker.model.errors import Invalid
from stoker.store.notifier import ALL
from stoker.store.tx import Tx

EventKind = Literal[
    "target", "state", "trigger", "log", "progress", "status", "stack", "resource", "overview", "changed"
]
_SUBJECT = re.compile(r"(trigger|deployment|stack|server):[\w-]{1,64}|overview|servers|stacks|triggers", re.ASCII)
_SUBJECTS = "trigger:<id>, deployment:<id>, stack:<id>, server:<id>, overview, servers, stacks, triggers"
#: Subjects of one stream.
_MOST_SUBJECTS = 16
#: Return a reader by the id, the project, the position and the kinds of events; no kinds: the usual ones.
_READERS: Mapping[str, Callable[[str, str, str, frozenset[str]], Reader]] = {
    "trigger": TriggerReader,
    "deployment": DeploymentReader,
    "stack": StackReader,
}


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
    after = event_stream.last_id(request)
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
    return make(id, request.project, cursors.parse(after).get(cursors.name(subject), ""), frozenset(query.events))


class SubjectsReader:
    """The position of a stream among the events of several subjects."""

    def __init__(self, readers: Mapping[str, Reader], after: str = "") -> None:
        """``readers`` by subject; ``after`` is the cursor of which they know their parts."""
        self._readers = dict(readers)
        names = {cursors.name(subject) for subject in readers}
        self._positions = {name: position for name, position in cursors.parse(after).items() if name in names}
        self.is_repeatable = all(reader.is_repeatable for reader in readers.values())
        self.pause = min((reader.pause for reader in readers.values()), default=event_stream.PAUSE_SECONDS)
        #: Subjects that have more events already.
        self._more: set[str] = set()

    def topics(self) -> Collection[str]:
        return {topic for reader in self._readers.values() for topic in reader.topics()}

    def read(self, tx: Tx, notified: Collection[str] | None) -> Batch:
        """Return the next events of the subjects that were notified. A subject that has ended is read no more."""
        events: list[Event] = []
        for subject, reader in list(self._readers.items()):
            concerned = None if notified is None else {*notified} & {*reader.topics(), ALL}
            if concerned is not None and not concerned and subject not in self._more:
                continue
            batch = reader.read(tx, concerned)
            events += [self._address(event, subject) for event in batch.events]
            (self._more.add if batch.more else self._more.discard)(subject)
            if batch.over:
                del self._readers[subject]
        return Batch(events, over=not self._readers, more=bool(self._more))

    def _address(self, event: Event, subject: str) -> Event:
        """Return the event with its subject, and with a cursor over all subjects."""
        if event.id is None:
            return replace(event, subject=subject)
        self._positions[cursors.name(subject)] = event.id
        return replace(event, subject=subject, id=cursors.join(self._positions))
