"""What all commands of one call of ``stoker`` share."""

from __future__ import annotations

import logging
from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING

import click

if TYPE_CHECKING:
    from stoker_client.client import Client


@dataclass
class Session:
    """The global options, and the client made from them when a command first needs it."""

    cloud: str | None = None
    debug: bool = False

    @cached_property
    def client(self) -> Client:
        """The client, logged in at its first call."""
        from stoker_client.client import connect  # not for --help, which is to answer at once

        # It warns of what our own error says better a moment later.
        logging.getLogger("keystoneauth").setLevel(logging.DEBUG if self.debug else logging.CRITICAL)
        client = connect(self.cloud)
        click.get_current_context().find_root().call_on_close(client.close)
        return client
