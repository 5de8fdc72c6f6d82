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
    def transports(self) -> Transports: ...

    @property
    def work(self) -> Work: ...

    @property
    def platform(self) -> Platform: ...

    @property
    def signal_tokens(self) -> SignalTokens: ...

    @property
    def authorizer(self) -> DeploymentAuthorizer: ...

    @property
    def listeners(self) -> RunListeners: ...
