"""
Parts of uvicorn's connections that take less memory.

A process has one connection for each agent, so 1 KB of each connection is 10 MB for 10,000 agents. ``deque`` and
``asyncio.Event``, which contains one, allocate 600 bytes even if they are empty.
"""

from __future__ import annotations

import asyncio
from typing import Any, cast

from uvicorn.protocols.http.flow_control import FlowControl
from uvicorn.protocols.http.httptools_impl import RequestResponseCycle

from stoker.serve.light_event import LightEvent


class Pipeline(list[Any]):
    """The requests that wait for the response of an earlier one, the newest first. Almost always empty."""

    __slots__ = ()

    def appendleft(self, item: Any) -> None:
        """Add the newest request."""
        self.insert(0, item)


class LightFlowControl(FlowControl):
    """uvicorn's flow control of one connection."""

    __slots__ = ("_is_writable_event", "_transport", "read_paused", "write_paused")

    def __init__(self, transport: asyncio.Transport) -> None:
        self._transport = transport
        self.read_paused = False
        self.write_paused = False
        self._is_writable_event = cast(asyncio.Event, LightEvent(is_set=True))


def lighten(cycle: RequestResponseCycle) -> None:
    """Replace the event of a request that was not started yet."""
    cycle.message_event = cast(asyncio.Event, LightEvent())
