"""Repetition of deployments: an update of the stack with its present template runs again what is marked as failed."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from functools import partial
from typing import Any

from msgspec.structs import replace

from stoker.deployments import server_runs, service
from stoker.deployments.server_runs import write_part
from stoker.model.deployment import Deployment
from stoker.model.errors import Conflict
from stoker.model.stack import CREATED, Action, Resource, Stack, Status
from stoker.resources.base import is_created
from stoker.stacks import operations
from stoker.stacks.engine import Engine, operation
from stoker.stacks.operations import Options
from stoker.stacks.templates.prepare import prepare_again
from stoker.store import deployments, resources, servers, stacks
from stoker.store.open import Store
from stoker.store.tx import Tx

#: Actions that an update of the stack repeats if they failed.
_REPEATED = (Action.CREATE, Action.UPDATE, Action.ADOPT, Action.RESUME)


def retry(tx: Tx, engine: Engine, deployment: Deployment, requested_by: str) -> Deployment:
    """
    Run a failed deployment again: that of a stack by an update of the stack with its present template, unless its
    resource is complete, because a remediation failed. Raises Conflict, also if nothing would run, ActionInProgress.
    """
    failed = service.lock_failed(tx, deployment)
    if failed.resource_id is None:
        return service.run_again(tx, engine.env, failed, requested_by)
    resource, root = _resource_and_root(tx, failed)
    operation.refuse_busy(root)
    if root.action in (Action.DELETE, Action.SUSPEND):
        raise Conflict(f"Stack {root.name} is in {root.action}_{root.status}: {root.action.lower()} it again.")
    if resource.status is Status.COMPLETE:
        return service.run_again(tx, engine.env, failed, requested_by)
    if resource.status is not Status.FAILED or resource.action not in _REPEATED:
        raise Conflict(
            f"The resource {resource.name} is {resource.action}_{resource.status}: update stack {root.name} instead."
        )
    updated = repeat(tx, engine, root, (resource,))
    after = deployments.get(tx, failed.id)
    if after.config_id == failed.config_id and updated.status is not Status.IN_PROGRESS:
        raise Conflict(
            f"A retry would not run the deployment ({failed.id}) again: {updated.reason}. Update stack"
            f" {root.name} with a template that changes the resource {resource.name}, or delete the deployment."
        )
    return after


def repeat(tx: Tx, engine: Engine, root: Stack, failed: Iterable[Resource]) -> Stack:
    """
    Update the stack with its present template, which repeats the resources of its tree that are stored as ``failed``.
    The resources around them count as failed, so that the update visits the nested stacks. Raises NotSupported.
    """
    around = {resource.id: resource for item in failed for resource in _around(tx, item)}
    resources.save_all(
        tx,
        [
            replace(resource, action=Action.UPDATE, status=Status.FAILED)
            for resource in around.values()
            if resource.action is not Action.DELETE
        ],
    )
    resolved = prepare_again(engine, root, stacks.source(tx, root.id), engine.budget(tx))
    return operations.update(tx, engine, resolved, Options())


def run_again(store: Store, engine: Engine, args: Mapping[str, Any]) -> None:
    """Job: run again what an enrolled server's earlier machine had completed."""
    create_again(store, engine, args["server_id"], args["until"])
    server_runs.rerun(store, engine.env, args)


def create_again(store: Store, engine: Engine, server_id: str, until: int) -> None:
    """
    Run CREATE of the stacks' deployments on a server whose machine was replaced, in the order of requirements, except
    for what has run since ``until`` (microseconds since 1970).
    """
    with store.read() as tx:
        stack_ids = {deployment.stack_id for deployment in deployments.of_resources(tx, server_id, until)}
        trees = [stacks.find(tx, id) for id in stack_ids if id is not None]
    for root_id in sorted({stack.root_id for stack in trees if stack is not None}):
        do = partial(_create_tree_again, engine=engine, root_id=root_id, server_id=server_id, until=until)
        write_part(store, do, stack_id=root_id, server_id=server_id)


def _create_tree_again(tx: Tx, engine: Engine, root_id: str, server_id: str, until: int) -> None:
    root = stacks.find(tx, root_id, for_update=True)
    server = servers.find(tx, server_id)
    if root is None or root.action is Action.DELETE or server is None:
        return
    marked = [
        replace(
            resource,
            action=Action.CREATE,
            status=Status.FAILED,
            reason=f"Server {server.name} was enrolled again",
            data={**resource.data, CREATED: False},
        )
        for resource in _created_before(tx, root_id, server_id, until)
    ]
    resources.save_all(tx, marked)
    if marked and root.action is not Action.SUSPEND:  # after the stack is resumed, its next update runs CREATE
        repeat(tx, engine, root, marked)


def _created_before(tx: Tx, root_id: str, server_id: str, until: int) -> Iterator[Resource]:
    """Yield the resources of a tree whose deployments ran on a server before ``until``."""
    for deployment in deployments.of_resources(tx, server_id, until):
        resource = resources.find(tx, deployment.resource_id or "")
        if resource is None or not resource.current or not is_created(resource):
            continue
        if stacks.get(tx, resource.stack_id).root_id == root_id:
            yield resource


def _around(tx: Tx, resource: Resource) -> Iterator[Resource]:
    """Yield the resources that represent the nested stacks around a resource, the innermost first."""
    stack = stacks.get(tx, resource.stack_id)
    while stack.parent_resource_id is not None:
        parent = resources.find(tx, stack.parent_resource_id)
        if parent is None:
            return
        yield parent
        stack = stacks.get(tx, parent.stack_id)


def _resource_and_root(tx: Tx, deployment: Deployment) -> tuple[Resource, Stack]:
    """Return the deployment's resource, and the root of its tree of stacks. Raises Conflict."""
    resource = resources.find(tx, deployment.resource_id or "")
    stack = stacks.find(tx, resource.stack_id) if resource else None
    root = stacks.find(tx, stack.root_id) if stack else None
    if resource is None or root is None or not resource.current:
        raise Conflict(f"The resource of the deployment ({deployment.id}) is gone or going: there is nothing to retry.")
    return resource, root
