"""Listeners: tell the owner of a deployment, in the same transaction, what happens to the deployment."""

from __future__ import annotations

from dataclasses import dataclass, field

from stoker.deployments.env import DeploymentEnv
from stoker.model.deployment import Deployment
from stoker.store.tx import Tx


class RunListener:
    """
    The listener of deployments that a client owns, which has no effect. Other listeners override its methods.

    The deployment and its owner are locked.
    """

    def run_ended(self, tx: Tx, env: DeploymentEnv, deployment: Deployment, *, cancelled: bool = False) -> None:
        """Handle the end of a run. ``cancelled``: its agent was instructed to stop the run before it ended."""

    def run_restarted(self, tx: Tx, env: DeploymentEnv, deployment: Deployment) -> None:
        """Handle another run of a deployment that had ended. The run may have ended already."""

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
