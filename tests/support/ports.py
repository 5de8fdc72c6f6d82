"""Ports for servers of tests that no other process takes before a server starts, or while it is stopped."""

from __future__ import annotations

import fcntl
import functools
import itertools
import os
import random
import socket
import tempfile
from collections.abc import Iterator
from pathlib import Path

#: The first port of the first block, and the number of ports in a block.
_FIRST, _BLOCK = 10_000, 128
#: The file with the first and the last port that the system gives to clients.
_CLIENT_PORTS = Path("/proc/sys/net/ipv4/ip_local_port_range")
_random = random.SystemRandom()  # processes with one seed try different blocks


def free_port() -> int:
    """
    Return a port that is currently free.

    The system gives it to no client, and no other test process returns it. This process returns it again after all
    other ports of its block.
    """
    for port in itertools.islice(_own_ports(), _BLOCK):
        with socket.socket() as probe:
            probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)  # as servers do, after an earlier one
            try:
                probe.bind(("127.0.0.1", port))
            except OSError:
                continue
            return port
    raise AssertionError("no port is free")


@functools.cache
def _own_ports() -> Iterator[int]:
    """Reserve a block of ports for this process, and yield its ports in turns."""
    return itertools.cycle(_reserve_block())


def _reserve_block() -> range:
    folder = Path(tempfile.gettempdir()) / f"stoker-tests-ports-{os.getuid()}"
    folder.mkdir(exist_ok=True)
    end = int(_CLIENT_PORTS.read_text().split()[0])
    if end < _FIRST + 20 * _BLOCK:  # a range that leaves too few others
        end = 1 << 16
    blocks = [range(first, first + _BLOCK) for first in range(_FIRST, end - _BLOCK, _BLOCK)]
    for block in _random.sample(blocks, len(blocks)):
        file = os.open(folder / str(block.start), os.O_RDWR | os.O_CREAT, 0o600)
        try:
            fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)  # held until this process ends in any way
        except OSError:
            os.close(file)
        else:
            return block
    raise AssertionError("all blocks of ports are reserved")
