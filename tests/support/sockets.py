"""Reads the kernel's state of loopback connections."""

from __future__ import annotations

import socket
from collections.abc import Iterable
from pathlib import Path

from support import waiting


def until_read(connection: socket.socket) -> None:
    """
    Wait until the server has read all data that was sent on this connection.

    On loopback, sent bytes are in the server's receive queue at once.
    """
    client, server = connection.getsockname()[1], connection.getpeername()[1]
    waiting.until(lambda: not _unread(server, client), explain=lambda: "the server does not read its request")


def count_connections(pids: Iterable[int], port: int) -> int:
    """Return the number of the processes' connections with that port at either end."""
    files = [file for pid in pids for file in Path(f"/proc/{pid}/fd").iterdir() if file.is_symlink()]
    own = [str(file.readlink()) for file in files]
    rows = [line.split() for line in Path("/proc/net/tcp").read_text().splitlines()[1:]]
    ends = {f"socket:[{row[9]}]": row[1:3] for row in rows if row[3] == "01"}  # established
    return sum(any(int(end.rpartition(":")[2], 16) == port for end in ends.get(name, ())) for name in own)


def _unread(local: int, remote: int) -> bool:
    """Whether the socket with these ports has unread bytes, or is not accepted yet."""
    for line in Path("/proc/net/tcp").read_text().splitlines()[1:]:
        words = line.split()
        ports = [int(address.rpartition(":")[2], 16) for address in words[1:3]]
        if ports == [local, remote]:
            return int(words[4].rpartition(":")[2], 16) > 0
    return True
