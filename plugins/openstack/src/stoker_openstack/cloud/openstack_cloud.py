"""The cloud of resource types (``interface.Cloud``) at an OpenStack: records desired states and defers jobs."""

from __future__ import annotations

from msgspec.structs import replace

from stoker.backends.reconciler import request
from stoker.model.errors import EntityNotFound
from stoker.model.status import Status
from stoker.store import stacks
from stoker.store.tx import Tx
from stoker.work import Work
from stoker_openstack.cloud.drivers.base import ABANDONED, GIVEN_UP, SENT_AT, Registry
from stoker_openstack.cloud.recorder import JOBS
from stoker_openstack.model import CloudAction, CloudObject, CloudRequest
from stoker_openstack.store import cloud_objects


class OpenStackCloud:
    """Implements ``interface.Cloud``."""

    def __init__(self, work: Work, registry: Registry) -> None:
        self._work = work
        self._registry = registry

    def request(self, tx: Tx, request: CloudRequest) -> CloudObject:
        """Record the desired state of an object and defer the job that applies it."""
        current = cloud_objects.find(tx, request.id, for_update=True)
        if current is None:
            current = _new(tx, request)
            cloud_objects.add(tx, current)
        else:
            current = _changed(current, request)
            cloud_objects.save(tx, current)
        self._defer(tx, current)
        return current

    def find(self, tx: Tx, id: str) -> CloudObject | None:
        """Return the object of a resource; None if there is none, or if it was deleted."""
        return cloud_objects.find(tx, id)

    def forget(self, tx: Tx, id: str) -> None:
        """Drop the record of an object and leave the object itself as it is."""
        cloud_objects.delete(tx, id)

    def _defer(self, tx: Tx, item: CloudObject) -> None:
        request(self._work, tx, self._registry.drivers[item.kind].noun.service, item.id, JOBS)


def _new(tx: Tx, request: CloudRequest) -> CloudObject:
    stack = stacks.find(tx, request.stack_id)
    if stack is None:
        raise EntityNotFound.of("Stack", request.stack_id)
    return CloudObject(
        id=request.id,
        kind=request.kind,
        project_id=request.project_id,
        root_id=stack.root_id,
        name=request.name,
        specification=request.specification,
        action=request.action,
        arguments=request.arguments,
        status=Status.IN_PROGRESS,
        reason="",
        desired_generation=1,
        observed_generation=0,
        external_id=request.external_id,
        observed={},
    )


def _changed(current: CloudObject, request: CloudRequest) -> CloudObject:
    # An interrupted create request remains known until its object is found or given up, as does an unfinished snapshot
    # until it is deleted.
    progress = {key: current.progress[key] for key in (SENT_AT, GIVEN_UP, ABANDONED) if key in current.progress}
    if current.action is CloudAction.SNAPSHOT and current.status is Status.IN_PROGRESS:
        progress[ABANDONED] = [*progress.get(ABANDONED, ()), current.desired_generation]
    return replace(
        current,
        name=request.name,
        specification=request.specification,
        action=request.action,
        arguments=request.arguments,
        status=Status.IN_PROGRESS,
        reason="",
        error_type="Error",
        desired_generation=current.desired_generation + 1,
        external_id=request.external_id or current.external_id,
        progress=progress,
        awaits=None,
        awaited_since=None,
    )
