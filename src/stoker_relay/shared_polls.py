"""
Shared polls: batches of agents, each of which holds one request at the central Stoker.

A batch sends its request again when an answer has come, when an agent has joined or has a new ETag. A later request
ends the earlier one at the central Stoker, so a batch holds one connection, and two for a moment.
"""

from __future__ import annotations

import asyncio
import contextlib
import random
import uuid
from collections.abc import Callable, Sequence
from typing import Any

import msgspec
import structlog

from stoker_relay.centre import Answer, Centre, CentreAway
from stoker_relay.known_keys import KnownKeys, digest_of
from stoker_relay.members import Member

_log = structlog.get_logger("stoker_relay")

#: Seconds that the central Stoker may hold a request. It holds it for the interval of heartbeats at most.
_WAIT = 60
#: Seconds for which changes of a batch are collected before its request is sent again.
_COLLECT_SECONDS = 0.02
#: Seconds that an earlier request gets to end by itself.
_RETIRE_SECONDS = 5.0
#: Pauses while the central Stoker is away.
_FIRST_PAUSE, _LONGEST_PAUSE = 0.25, 5.0


class _Answer(msgspec.Struct):
    index: int
    status: int
    etag: str = ""
    document: msgspec.Raw = msgspec.Raw(b"")
    retry_after: int | None = None
    error: Any = None


class _Answers(msgspec.Struct):
    agents: list[_Answer]


_decoder = msgspec.json.Decoder(_Answers)


class Batch:
    """Up to ``Batches.size`` agents that share a poll. ``run`` runs until it is cancelled."""

    def __init__(self, centre: Centre, known_keys: KnownKeys) -> None:
        self._centre = centre
        self._known_keys = known_keys
        self._id = uuid.uuid4().hex
        self.members: set[Member] = set()
        self._changed = asyncio.Event()
        self._failures = 0
        self._retiring: set[asyncio.Task[None]] = set()

    def change(self) -> None:
        """Send the request again soon, because a member has joined or has a new ETag."""
        self._changed.set()

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

    async def _step(self, current: asyncio.Task[bool] | None) -> asyncio.Task[bool] | None:
        """Wait until the request must be sent again, and send it. Return the request's task."""
        changed = asyncio.ensure_future(self._changed.wait())
        try:
            await asyncio.wait({changed, current} if current else {changed}, return_when=asyncio.FIRST_COMPLETED)
        finally:
            changed.cancel()
        if current is not None and current.done():
            if not current.result():
                await self._pause()
            current = None
        await asyncio.sleep(_COLLECT_SECONDS)
        self._changed.clear()
        active = [member for member in self.members if member.is_active]
        if current is not None:
            self._retire(current)
        return asyncio.create_task(self._request(active)) if active else None

    async def _pause(self) -> None:
        longest = min(_FIRST_PAUSE * 2**self._failures, _LONGEST_PAUSE)
        self._failures += 1
        await asyncio.sleep(longest * random.uniform(0.5, 1.0))  # noqa: S311 — spreads the batches

    def _retire(self, request: asyncio.Task[bool]) -> None:
        async def wait() -> None:
            with contextlib.suppress(TimeoutError):
                await asyncio.wait_for(request, _RETIRE_SECONDS)

        task = asyncio.create_task(wait())
        self._retiring.add(task)
        task.add_done_callback(self._retiring.discard)

    async def _request(self, members: Sequence[Member]) -> bool:
        """Send one request and deliver its answers. Return whether the central Stoker answered as expected."""
        sent = [(member, member.etag) for member in members]
        agents = [{"key": member.key, "etag": member.etag, "agent": member.agent} for member in members]
        body = msgspec.json.encode({"batch": self._id, "agents": agents})
        try:
            answer = await self._centre.poll(body, _WAIT)
            if answer.status != 200:
                _log.error("polls.refused", status=answer.status, answer=answer.body[:300].decode("utf-8", "replace"))
                return False
            answers = _decoder.decode(answer.body).agents
        except CentreAway:
            return False
        except msgspec.MsgspecError as error:
            _log.error("polls.unreadable", reason=str(error))
            return False
        self._failures = 0
        refused = set()
        for one in answers:
            if one.status in (401, 403):
                refused.add(one.index)
                self._known_keys.remove(digest_of(members[one.index].key))
            member, etag = sent[one.index]
            # A member that has polled again since is in a later request, which gets its answer.
            if member.is_active and member.etag == etag:
                member.deliver(_render(one))
        for index, member in enumerate(members):
            if index not in refused:
                self._known_keys.add(digest_of(member.key))
        return True


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
        batch = next((batch for batch in self._batches if len(batch.members) < self._size), None)
        if batch is None:
            batch = self._create()
            self._batches[batch] = asyncio.get_running_loop().create_task(batch.run())
        batch.members.add(member)
        self._of[member] = batch

    def change(self, member: Member) -> None:
        """Send the shared poll of the member's batch again."""
        self._of[member].change()

    def remove(self, member: Member) -> None:
        """Forget a member. A batch without members ends."""
        batch = self._of.pop(member)
        batch.members.discard(member)
        if not batch.members:
            self._batches.pop(batch).cancel()

    async def close(self) -> None:
        """End all requests."""
        tasks = list(self._batches.values())
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)
