"""
Owners of deployments: a stack's resource, a trigger, or the client that created the deployment.

The owner is told, in the same transaction, what happens to the deployment's runs.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from stoker.model.deployment import Deployment
from stoker.store.tx import Tx

if TYPE_CHECKING:
    from stoker.deployments.standalone import DeploymentEnv


class Owner:
    """A client, which needs no notice. Other owners override the methods. Deployment and owner are locked."""

    def run_ended(self, tx: Tx, env: DeploymentEnv, deployment: Deployment, *, cancelled: bool = False) -> None:
        """Handle the end of a run. ``cancelled``: its agent was instructed to stop the run before it ended."""

    def run_restarted(self, tx: Tx, env: DeploymentEnv, deployment: Deployment) -> None:
        """Handle another run of a deployment that had ended. The run may have ended already."""

    def removing(self, tx: Tx, env: DeploymentEnv, deployment: Deployment) -> None:
        """Handle the removal of a deployment by a client, before the deployment is deleted."""


@dataclass(frozen=True, slots=True)
class Owners:
    """The kinds of owners of this process."""

    trigger: Owner = field(default_factory=Owner)
    client: Owner = field(default_factory=Owner)

    def of(self, deployment: Deployment) -> Owner:
        """Return the deployment's owner."""
        return self.client if deployment.trigger_id is None else self.trigger
