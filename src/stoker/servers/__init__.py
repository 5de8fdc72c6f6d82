"""Where servers come from: enrolled by their owners, or started by a provider."""

from __future__ import annotations

from stoker.servers.facade import Servers

__all__ = ["Servers"]
