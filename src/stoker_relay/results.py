"""Results of runs, which the relay sends to the central Stoker together."""

from __future__ import annotations

import asyncio
from collections import deque
from typing import Any

import msgspec

from stoker_relay.centre import Answer, Centre, CentreAway

#: Results in one request, which the central Stoker limits, and bytes of a result that is not sent alone.
_MOST, _BYTES = 100, 16 * 1024
#: Requests at the same time. While they are under way, further results wait and are sent together.
_AT_ONCE = 2
#: Seconds for which results are collected.
_COLLECT_SECONDS = 0.01
#: Statuses with which the central Stoker asks for a later attempt.
_AWAY = (502, 503, 504)


class _Answer(msgspec.Struct):
    status: int
    body: msgspec.Raw
    retry_after: str = ""


class _Answers(msgspec.Struct):
    results: list[_Answer]


_decoder = msgspec.json.Decoder(_Answers)


class Results:
    """Sends results. Use it on the event loop only."""

    def __init__(self, centre: Centre) -> None:
        self._centre = centre
        self._waiting: deque[tuple[dict[str, Any], asyncio.Future[Answer | None]]] = deque()
        self._tasks: set[asyncio.Task[None]] = set()

    async def send(self, key: str, config_id: str, body: bytes) -> Answer | None:
        """
        Return the central Stoker's answer; None: send the result alone.

        Raises CentreAway.
        """
        if len(body) > _BYTES:
            return None
        try:
            values = msgspec.json.decode(body, type=dict[str, Any])
        except msgspec.MsgspecError:
            return None  # the central Stoker's answer says what is wrong
        future: asyncio.Future[Answer | None] = asyncio.get_running_loop().create_future()
        self._waiting.append(({"key": key, "config_id": config_id, "values": values}, future))
        if len(self._tasks) < _AT_ONCE:
            task = asyncio.create_task(self._send_waiting())
            self._tasks.add(task)
            task.add_done_callback(self._tasks.discard)
        return await future

    async def _send_waiting(self) -> None:
        await asyncio.sleep(_COLLECT_SECONDS)
        while self._waiting:
            batch = [self._waiting.popleft() for _ in range(min(_MOST, len(self._waiting)))]
            results: list[Answer | CentreAway | None]
            try:
                results = await self._request([item for item, _ in batch])
            except CentreAway as away:
                results = [away] * len(batch)
            except BaseException:
                for _, future in batch:
                    future.cancel()
                raise
            for (_, future), result in zip(batch, results, strict=True):
                if future.done():
                    continue  # the agent has closed its connection
                if isinstance(result, CentreAway):
                    future.set_exception(CentreAway(str(result)))
                else:
                    future.set_result(result)

    async def _request(self, items: list[dict[str, Any]]) -> list[Answer | CentreAway | None]:
        """Raises CentreAway."""
        answer = await self._centre.send_results(msgspec.json.encode({"results": items}))
        try:
            answers = _decoder.decode(answer.body).results if answer.status == 200 else []
        except msgspec.MsgspecError:
            answers = []
        if len(answers) != len(items):  # the relay's key is revoked, for example
            return [None] * len(items)
        return [_read(one) for one in answers]


def _read(one: _Answer) -> Answer | CentreAway:
    if one.status in _AWAY:
        return CentreAway(f"status {one.status}")
    headers = {"content-type": "application/json"}
    if one.retry_after:
        headers["retry-after"] = one.retry_after
    return Answer(one.status, headers, bytes(one.body))
