"""The services that deployments use."""

from __future__ import annotations

from typing import TYPE_CHECKING, Protocol

from stoker.identity.signal_tokens import SignalTokens
from stoker.policy.authorizer import DeploymentAuthorizer
from stoker.transports import Transports
from stoker.transports.base import Platform
from stoker.work import Work

if TYPE_CHECKING:
    from stoker.deployments.listeners import RunListeners


class DeploymentEnv(Protocol):
    """The services of one process. ``resources.env.ResourceEnv`` implements the protocol."""

    @property
    def transports(self) -> Transports:
        """The transports of this process."""
        ...

    @property
    def work(self) -> Work:
        """The queue of jobs."""
        ...

    @property
    def platform(self) -> Platform:
        """The services of this site."""
        ...

    @property
    def signal_tokens(self) -> SignalTokens:
        """The tokens of signal URLs."""
        ...

    @property
    def authorizer(self) -> DeploymentAuthorizer:
        """Applies the policies of servers."""
        ...

    @property
    def listeners(self) -> RunListeners:
        """Tell the owners of deployments."""
        ...
