"""Tells resources of stacks what happens to their deployments."""

from __future__ import annotations

from stoker.deployments.drift_events import describe_drift
from stoker.deployments.env import DeploymentEnv, RunListener
from stoker.late_bound import LateBound
from stoker.model.check import Check
from stoker.model.deployment import Deployment
from stoker.model.errors import ActionInProgress, Conflict
from stoker.model.stack import Resource, Stack
from stoker.model.status import Action, Status
from stoker.stacks import operations
from stoker.stacks.engine import Engine
from stoker.stacks.engine.commit import wake_resource
from stoker.stacks.engine.session import StackSession
from stoker.stacks.operations import Options
from stoker.stacks.templates.prepare import Identity, prepare_again
from stoker.store import deployments, resources, stacks
from stoker.store.tx import Tx

#: Actions that apply a resource's definition.
_APPLIED = (Action.CREATE, Action.UPDATE, Action.ADOPT)


class ResourceListener(RunListener):
    """The listener of deployments that belong to resources."""

    def __init__(self, engine: LateBound[Engine]) -> None:
        self._engine = engine

    def run_ended(self, tx: Tx, env: DeploymentEnv, deployment: Deployment, *, cancelled: bool = False) -> None:
        """Check the resource and continue its stack."""
        wake_resource(tx, self._engine.get(), deployment.resource_id or "", changed=deployment)

    def drift_changed(self, tx: Tx, env: DeploymentEnv, deployment: Deployment, check: Check) -> None:
        """Record an event of the resource, which the stack's sinks receive. The stack itself does not change."""
        resource = resources.find(tx, deployment.resource_id or "")
        stack = stacks.find(tx, resource.stack_id, for_update=True) if resource else None
        if resource is None or stack is None:
            return
        session = StackSession(tx, self._engine.get(), stack)
        session.events.record_signal(session.stack, resource, describe_drift(check))
        session.save()

    def removed(self, tx: Tx, env: DeploymentEnv, deployment: Deployment) -> None:
        """Fail a resource that waits for the deployment, unless the resource itself is being deleted."""
        resource = resources.find(tx, deployment.resource_id or "")
        if resource is not None and deployment.status == Status.IN_PROGRESS:
            is_deleting = resource.action is Action.DELETE
            failure = None if is_deleting else f"The deployment ({deployment.id}) was deleted."
            wake_resource(tx, self._engine.get(), resource.id, failure)

    def retry(self, tx: Tx, deployment: Deployment) -> Deployment | None:
        """
        Update the stack with its present template, or return None if the resource is complete.

        Raises Conflict, ActionInProgress.
        """
        resource, root = _resource_and_root(tx, deployment)
        if root.status is Status.IN_PROGRESS:
            raise ActionInProgress(f"Stack {root.name} already has an action ({root.action}) in progress.")
        if root.action in (Action.DELETE, Action.SUSPEND):
            raise Conflict(f"Stack {root.name} is in {root.action}_{root.status}: {root.action.lower()} it again.")
        if resource.status is Status.COMPLETE and resource.action in _APPLIED:
            return None  # a remediation of drift has failed, which does not change the resource
        if resource.status is not Status.FAILED or resource.action not in _APPLIED:
            raise Conflict(
                f"The resource {resource.name} is {resource.action}_{resource.status}:"
                f" update stack {root.name} instead."
            )
        source, identity = stacks.source(tx, root.id), Identity(root.id, root.name, root.project_id)
        resolved = prepare_again(self._engine.get(), source, identity, source.files, self._engine.get().budget(tx))
        operations.update(tx, self._engine.get(), root.id, resolved, Options())
        return deployments.get(tx, deployment.id)


def _resource_and_root(tx: Tx, deployment: Deployment) -> tuple[Resource, Stack]:
    """Return the deployment's resource, and the root of its tree of stacks. Raises Conflict."""
    resource = resources.find(tx, deployment.resource_id or "")
    stack = stacks.find(tx, resource.stack_id) if resource else None
    root = stacks.find(tx, stack.root_id) if stack else None
    if resource is None or root is None or not resource.current:
        raise Conflict(f"The resource of the deployment ({deployment.id}) is gone or going: there is nothing to retry.")
    return resource, root
