"""
What a transport is: one small value a file, implementing the protocols it can.

Signal transports say how a result comes back; metadata transports say how a document reaches a server.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Protocol, runtime_checkable


@runtime_checkable
class Signalling(Protocol):
    signal_name: str
    #: False when no result is expected: the deployment is complete once it is in the document.
    awaits_signal: bool

    def signal_inputs(self) -> Mapping[str, Any]:
        """``deploy_*`` inputs that tell the agent where and how to send its result."""


@runtime_checkable
class Carrying(Protocol):
    metadata_name: str

    def sections(self) -> Mapping[str, Any]:
        """Sections of ``os-collect-config`` that tell the agent where to fetch its document."""
