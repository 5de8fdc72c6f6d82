"""Servers: their enrollment, keys and heartbeats, and the local provider."""

from __future__ import annotations

from stoker.servers.facade import Servers

__all__ = ["Servers"]
