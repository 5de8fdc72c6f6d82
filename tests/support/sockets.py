"""Reads the kernel's state of loopback connections."""

from __future__ import annotations

import socket
from pathlib import Path

from support import waiting


def until_read(connection: socket.socket) -> None:
    """
    Wait until the server has read all data that was sent on this connection.

    On loopback, sent bytes are in the server's receive queue at once.
    """
    client, server = connection.getsockname()[1], connection.getpeername()[1]
    waiting.until(lambda: not _unread(server, client), explain=lambda: "the server does not read its request")


def _unread(local: int, remote: int) -> bool:
    """Whether the socket with these ports has unread bytes, or is not accepted yet."""
    for line in Path("/proc/net/tcp").read_text().splitlines()[1:]:
        words = line.split()
        ports = [int(address.rpartition(":")[2], 16) for address in words[1:3]]
        if ports == [local, remote]:
            return int(words[4].rpartition(":")[2], 16) > 0
    return True
