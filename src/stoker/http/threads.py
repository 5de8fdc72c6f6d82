"""Where what may block runs: threads of our own, at half the price of a hop through Starlette's."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from typing import ParamSpec, TypeVar

T = TypeVar("T")
P = ParamSpec("P")

#: As many as Starlette has. Readers of the store wait for disks, writers for their group's commit.
_THREADS = ThreadPoolExecutor(40, thread_name_prefix="stoker-http")


async def in_thread(do: Callable[P, T], *args: P.args, **named: P.kwargs) -> T:
    loop = asyncio.get_running_loop()
    if named:
        return await loop.run_in_executor(_THREADS, lambda: do(*args, **named))
    return await loop.run_in_executor(_THREADS, do, *args)
