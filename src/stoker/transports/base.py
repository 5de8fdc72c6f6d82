"""
What a transport is: one small value a file, implementing the protocols it can.

Signal transports say how a result comes back; metadata transports say how a document reaches a server.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Protocol, runtime_checkable

from stoker.store.tx import Tx


@dataclass(frozen=True, slots=True, kw_only=True)
class Party:
    """The resource that a transport serves: a server that gets its document, or a deployment whose result comes."""

    resource_id: str
    resource_name: str
    #: Heat's name for the real thing.
    name: str
    stack_id: str
    stack_name: str
    project_id: str


@dataclass(frozen=True, slots=True)
class Login:
    """A user that may see and signal one resource and nothing else."""

    user_id: str
    username: str
    password: str
    access_key: str
    secret_key: str


class Site(Protocol):
    """What transports may use of the rest of Stoker; ``serve`` provides it."""

    @property
    def public_url(self) -> str: ...

    @property
    def auth_url(self) -> str: ...

    @property
    def region(self) -> str: ...

    def login(self, party: Party) -> Login: ...

    def signed_url(self, party: Party, kind: str, verb: str) -> str:
        """A URL of CloudFormation's API, ``signal`` or ``waitcondition``, that only ``verb`` may be sent to."""
        ...


@runtime_checkable
class Signalling(Protocol):
    signal_name: str
    #: False when no result is expected: the deployment is complete once it is in the document.
    awaits_signal: bool

    def signal_inputs(self, tx: Tx, site: Site, party: Party) -> Mapping[str, Any]:
        """``deploy_*`` inputs that tell the agent where and how to send its result."""


@runtime_checkable
class Carrying(Protocol):
    metadata_name: str

    def sections(self, site: Site, party: Party) -> Mapping[str, Mapping[str, Any]]:
        """Sections of ``os-collect-config`` that tell the agent where to fetch its document."""
