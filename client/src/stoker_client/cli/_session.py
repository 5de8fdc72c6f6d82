"""State of one call of ``stoker``."""

from __future__ import annotations

import logging
from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING

import click

from stoker_client.cli._output import printable

if TYPE_CHECKING:
    from stoker_client.client import Client


@dataclass
class Session:
    """The global options, and the client, which is created on first use."""

    cloud: str | None = None
    debug: bool = False

    @cached_property
    def client(self) -> Client:
        """The client. The first access logs in."""
        from stoker_client.client import connect  # imported here because --help must answer at once

        # keystoneauth logs warnings about problems that the client's own errors describe better.
        logging.getLogger("keystoneauth").setLevel(logging.DEBUG if self.debug else logging.CRITICAL)
        client = connect(self.cloud)
        client.on_warning(lambda text: click.echo(f"Warning: {printable(text)}", err=True))
        click.get_current_context().find_root().call_on_close(client.close)
        return client
