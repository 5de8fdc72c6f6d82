"""Messages to the service manager that started the agent (sd_notify)."""

from __future__ import annotations

import contextlib
import os
import socket
from typing import Dict

#: Variables that are only for the agent's own process: tools such as podman would act on them.
_VARIABLES = ("NOTIFY_SOCKET", "WATCHDOG_USEC", "WATCHDOG_PID")


class ServiceManager:
    """
    Sends notifications to systemd. Without systemd, every call does nothing.

    Removes systemd's variables from the environment, which runs inherit.
    """

    def __init__(self) -> None:
        self._variables: Dict[str, str] = {}
        for name in _VARIABLES:
            if name in os.environ:
                self._variables[name] = os.environ.pop(name)

    @property
    def is_present(self) -> bool:
        """Whether systemd awaits notifications of this process, and starts it again when it ends."""
        return "NOTIFY_SOCKET" in self._variables

    def notify(self, message: str) -> None:
        """Send assignments such as ``READY=1``, one per line. Best effort."""
        address = self._variables.get("NOTIFY_SOCKET")
        if not address:
            return
        if address.startswith("@"):
            address = "\0" + address[1:]
        with contextlib.suppress(OSError), socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM) as sender:
            sender.sendto(message.encode(), address)

    def restore_environment(self) -> None:
        """Put the variables back, for a program that replaces this one in the same process."""
        os.environ.update(self._variables)
