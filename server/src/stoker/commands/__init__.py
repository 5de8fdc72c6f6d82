"""
Commands of the server, found by the command line through entry points.

Their errors are one line and a non-zero exit code.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

import click

from stoker.model.errors import StokerError


@contextmanager
def reported_as_click_errors() -> Iterator[None]:
    """Convert errors of Stoker and of the operating system to errors of click."""
    try:
        yield
    except StokerError as error:
        raise click.ClickException(error.message) from None
    except OSError as error:
        reason = f"{error.strerror}: {error.filename}" if error.filename else str(error)
        raise click.ClickException(reason) from None
