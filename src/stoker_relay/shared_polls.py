"""
Shared polls: batches of agents, each of which has a session and holds one request at the central Stoker.

The first request of a session has all agents of the batch, later ones have only those that joined, left or polled
again. After a failure, or if the central Stoker does not know the session, the batch sends all of them again. A later
request ends the earlier one at the central Stoker, so a batch needs two connections to the process with its session.
"""

from __future__ import annotations

import asyncio
import itertools
import random
import time
import uuid
from collections.abc import Callable, Sequence
from typing import Any

import msgspec
import structlog

from stoker_relay.centre import Answer, Centre, CentreAway
from stoker_relay.known_keys import KnownKeys, digest_of
from stoker_relay.members import Member
from stoker_relay.metrics import Metrics

_log = structlog.get_logger("stoker_relay")

#: Seconds that the central Stoker may hold a request. It holds it for the interval of heartbeats at most.
_WAIT = 60
#: Seconds for which changes of a batch are collected before its request is sent again.
_COLLECT_SECONDS = 0.02
#: Seconds between two requests of which the later one ends the earlier one.
_BETWEEN_SECONDS = 0.1
#: Seconds for which receipts of documents wait for another reason to send a request.
_RECEIPT_SECONDS = 1.0
#: Seconds that an earlier request gets to end by itself.
_RETIRE_SECONDS = 5.0
#: New connections that a request tries if the process that it reached does not know the session: with three processes,
#: one of 650 requests reaches the right one by none of them.
_TRIES = 15
#: Pauses while the central Stoker is away.
_FIRST_PAUSE, _LONGEST_PAUSE = 0.25, 5.0


class _Answer(msgspec.Struct):
    number: int
    status: int
    etag: str = ""
    document: msgspec.Raw = msgspec.Raw(b"")
    retry_after: int | None = None
    error: Any = None


class _Answers(msgspec.Struct):
    agents: list[_Answer]
    unknown: bool = False


_decoder = msgspec.json.Decoder(_Answers)


class Batch:
    """Up to ``Batches.size`` agents that share a session. ``run`` runs until it is cancelled."""

    def __init__(self, centre: Centre, known_keys: KnownKeys, metrics: Metrics) -> None:
        self._metrics = metrics
        self._polls = centre.open_polls()
        self._known_keys = known_keys
        self._id = uuid.uuid4().hex
        self._members: dict[int, Member] = {}
        self._numbers = itertools.count()
        #: Members of which the session may have to learn something, and numbers of those that were forgotten.
        self._unsent: set[Member] = set()
        self._removed: list[int] = []
        #: The number of the last request, and whether the next one must begin the session again.
        self._number = 0
        self._must_begin = True
        self._sent_at = 0.0
        self._changed = asyncio.Event()
        self._receipts: asyncio.TimerHandle | None = None
        self._failures = 0
        self._retiring: set[asyncio.Task[None]] = set()

    def __len__(self) -> int:
        """The number of members."""
        return len(self._members)

    def add(self, member: Member) -> None:
        """Add a member, which is not active yet."""
        member.number = next(self._numbers)
        self._members[member.number] = member

    def remove(self, member: Member) -> None:
        """Remove a member."""
        del self._members[member.number]
        self._unsent.discard(member)
        if member.known_poll is not None:
            self._removed.append(member.number)

    def change(self, member: Member) -> None:
        """Send the member's poll: soon, or within a second if the session needs it for its records only."""
        self._unsent.add(member)
        if member.is_active and member.known_poll != (member.etag, member.agent):
            self._changed.set()
        elif self._receipts is None:
            self._receipts = asyncio.get_running_loop().call_later(_RECEIPT_SECONDS, self._changed.set)

    async def run(self) -> None:
        """Hold a request while the batch has active members."""
        current: asyncio.Task[bool] | None = None
        try:
            while True:
                current = await self._step(current)
        finally:
            for task in (current, *self._retiring):
                if task is not None:
                    task.cancel()
            await self._polls.close()

    async def _step(self, current: asyncio.Task[bool] | None) -> asyncio.Task[bool] | None:
        """Wait until a request must be sent, and send it. Return its task."""
        changed = asyncio.ensure_future(self._changed.wait())
        try:
            await asyncio.wait({changed, current} if current else {changed}, return_when=asyncio.FIRST_COMPLETED)
        finally:
            changed.cancel()
        if current is not None and current.done():
            if not current.result():
                await self._pause()
            current = None
        soonest = 0.0 if current is None else self._sent_at + _BETWEEN_SECONDS - time.monotonic()
        await asyncio.sleep(max(soonest, _COLLECT_SECONDS))
        if current is not None:
            self._retire(current)
        self._changed.clear()
        if self._receipts is not None:
            self._receipts.cancel()
            self._receipts = None
        self._sent_at = time.monotonic()
        if not any(member.is_active for member in self._members.values()):
            self._must_begin = True
            return None
        return asyncio.create_task(self._request(*self._next_request()))

    async def _pause(self) -> None:
        longest = min(_FIRST_PAUSE * 2**self._failures, _LONGEST_PAUSE)
        self._failures += 1
        await asyncio.sleep(longest * random.uniform(0.5, 1.0))  # noqa: S311 — spreads the batches

    def _retire(self, request: asyncio.Task[bool]) -> None:
        async def wait() -> None:
            try:
                is_answered = await asyncio.wait_for(request, _RETIRE_SECONDS)
            except TimeoutError:
                is_answered = False
            if not is_answered:
                self._begin_again()

        task = asyncio.create_task(wait())
        self._retiring.add(task)
        task.add_done_callback(self._retiring.discard)

    def _begin_again(self) -> None:
        """Send all members with the next request, because an answer is lost, or the session is unknown."""
        self._must_begin = True
        self._changed.set()

    def _next_request(self) -> tuple[bytes, list[Member]]:
        """Return the body of the next request, and the members in it."""
        self._number += 1
        is_full, self._must_begin = self._must_begin, False
        if is_full:
            self._metrics.full_polls.inc()
            for member in self._members.values():
                member.known_poll = None
            self._unsent, self._removed = set(self._members.values()), []
        sent = [member for member in self._unsent if member.is_active]
        left = [member for member in self._unsent if not member.is_active and member.known_poll is not None]
        removed = [*self._removed, *(member.number for member in left)]
        self._unsent, self._removed = set(), []
        for member in left:
            member.known_poll = None
        for member in sent:
            member.known_poll = (member.etag, member.agent)
        agents = [
            {"number": member.number, "key": member.key, "etag": member.etag, "agent": member.agent} for member in sent
        ]
        body = {"session": self._id, "number": self._number, "full": is_full, "agents": agents, "removed": removed}
        return msgspec.json.encode(body), sent

    async def _request(self, body: bytes, sent: Sequence[Member]) -> bool:
        """Send one request and deliver its answers. Return whether the central Stoker answered as expected."""
        answers = await self._ask(body)
        for _ in range(_TRIES):
            if answers is None or not answers.unknown:
                break
            answers = await self._ask(body)
        if answers is None:
            self._begin_again()
            return False
        self._failures = 0
        if answers.unknown:
            self._begin_again()
            return True
        refused = {one.number for one in answers.agents if one.status in (401, 403)}
        for one in answers.agents:
            member = self._members.get(one.number)
            if member is not None:
                self._deliver(member, one)
        for member in sent:
            if member.number not in refused:
                self._known_keys.add(digest_of(member.key))
        return True

    async def _ask(self, body: bytes) -> _Answers | None:
        """Return the central Stoker's answer, or None if there is none that can be used."""
        try:
            self._metrics.shared_polls.inc()
            answer = await self._polls.poll(body, _WAIT)
            if answer.status != 200:
                _log.error("polls.refused", status=answer.status, answer=answer.body[:300].decode("utf-8", "replace"))
                return None
            return _decoder.decode(answer.body)
        except CentreAway:
            return None
        except msgspec.MsgspecError as error:
            _log.error("polls.unreadable", reason=str(error))
            return None

    def _deliver(self, member: Member, one: _Answer) -> None:
        """Give the answer to the member, unless it has this document already."""
        if one.status in (401, 403):
            self._known_keys.remove(digest_of(member.key))
        member.known_poll = (
            (one.etag, member.known_poll[1]) if one.status == 200 and member.known_poll is not None else None
        )
        if member.is_active and (one.status != 200 or member.etag != one.etag):
            member.deliver(_render(one))


def _render(one: _Answer) -> Answer:
    headers = {"content-type": "application/json"}
    if one.etag:
        headers["etag"] = one.etag
    if one.retry_after is not None:
        headers["retry-after"] = str(one.retry_after)
    if one.status == 304:
        del headers["content-type"]
        return Answer(304, headers)
    return Answer(one.status, headers, bytes(one.document) or msgspec.json.encode(one.error))


class Batches:
    """All batches of the relay. ``size`` is the number of agents in one batch."""

    def __init__(self, create: Callable[[], Batch], size: int) -> None:
        self._create = create
        self._size = size
        self._batches: dict[Batch, asyncio.Task[None]] = {}
        self._of: dict[Member, Batch] = {}

    def add(self, member: Member) -> None:
        """Put a new member into a batch with a free place."""
        batch = next((batch for batch in self._batches if len(batch) < self._size), None)
        if batch is None:
            batch = self._create()
            self._batches[batch] = asyncio.get_running_loop().create_task(batch.run())
        batch.add(member)
        self._of[member] = batch

    def change(self, member: Member) -> None:
        """Send what has changed about the member."""
        self._of[member].change(member)

    def remove(self, member: Member) -> None:
        """Forget a member. A batch without members ends."""
        batch = self._of.pop(member)
        batch.remove(member)
        if not len(batch):
            self._batches.pop(batch).cancel()

    async def close(self) -> None:
        """End all requests."""
        tasks = list(self._batches.values())
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)
