"""The services that deployments use, and the listeners that tell owners of deployments what happens to them."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Protocol

from stoker.identity.signal_tokens import SignalTokens
from stoker.model.check import Check
from stoker.model.deployment import Deployment
from stoker.policy.authorizer import DeploymentAuthorizer
from stoker.store.secret_columns import SecretColumns
from stoker.store.tx import Tx
from stoker.transports import Transports
from stoker.transports.base import Platform
from stoker.work import Work


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


@dataclass(frozen=True, slots=True)
class EndedRun:
    """A run that has ended, among others that ended in the same transaction."""

    deployment: Deployment
    #: Its agent was instructed to stop the run before it ended.
    was_cancelling: bool
    #: The secrets of the deployment.
    secrets: SecretColumns


class RunListener:
    """
    The listener of deployments that a client owns, which has no effect. Other listeners override its methods.

    The deployment and its owner are locked.
    """

    def run_ended(self, tx: Tx, env: DeploymentEnv, deployment: Deployment, *, cancelled: bool = False) -> None:
        """Handle the end of a run. ``cancelled``: its agent was instructed to stop the run before it ended."""

    def runs_ended(self, tx: Tx, env: DeploymentEnv, ended: Sequence[EndedRun]) -> None:
        """Handle the ends of several runs. The deployments are locked; of their triggers, only shared locks are."""
        for run in ended:
            tx.secrets = run.secrets
            self.run_ended(tx, env, run.deployment, cancelled=run.was_cancelling)

    def run_restarted(self, tx: Tx, env: DeploymentEnv, deployment: Deployment) -> None:
        """Handle another run of a deployment that had ended. The run may have ended already."""

    def drift_changed(self, tx: Tx, env: DeploymentEnv, deployment: Deployment, check: Check) -> None:
        """Handle the begin of drift (``check.drifted_at`` is set) or its end."""

    def removed(self, tx: Tx, env: DeploymentEnv, deployment: Deployment) -> None:
        """Handle the removal of a deployment by a client. ``deployment`` is as it was before."""

    def retry(self, tx: Tx, deployment: Deployment) -> Deployment | None:
        """Retry a failed deployment by an operation of its owner; return None if it has to run again in place."""


@dataclass(frozen=True, slots=True)
class RunListeners:
    """The listeners of this process, one for each kind of owner."""

    resource: RunListener = field(default_factory=RunListener)
    trigger: RunListener = field(default_factory=RunListener)
    client: RunListener = field(default_factory=RunListener)

    def of(self, deployment: Deployment) -> RunListener:
        """Return the listener of the deployment's owner."""
        if deployment.resource_id is not None:
            return self.resource
        return self.client if deployment.trigger_id is None else self.trigger
