"""The cloud of resource types (``interface.Cloud``) at an OpenStack: records desired states and defers jobs."""

from __future__ import annotations

from typing import Any

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
            requested = request.apply_to(None, _root_of(tx, request.stack_id))
            cloud_objects.add(tx, requested)
        else:
            requested = replace(request.apply_to(current, current.root_id), progress=_kept_progress(current))
            cloud_objects.save(tx, requested)
        self._defer(tx, requested)
        return requested

    def find(self, tx: Tx, id: str) -> CloudObject | None:
        """Return the object of a resource; None if there is none, or if it was deleted."""
        return cloud_objects.find(tx, id)

    def forget(self, tx: Tx, id: str) -> None:
        """Drop the record of an object and leave the object itself as it is."""
        cloud_objects.retain(tx, id)

    def _defer(self, tx: Tx, item: CloudObject) -> None:
        request(self._work, tx, self._registry.drivers[item.kind].noun.service, item.id, JOBS)


def _root_of(tx: Tx, stack_id: str) -> str:
    stack = stacks.find(tx, stack_id)
    if stack is None:
        raise EntityNotFound.of("Stack", stack_id)
    return stack.root_id


def _kept_progress(current: CloudObject) -> dict[str, Any]:
    """
    Return the notes that a newer request keeps.

    An interrupted create request remains known until its object is found or given up, as does an unfinished snapshot
    until it is deleted.
    """
    progress = {key: current.progress[key] for key in (SENT_AT, GIVEN_UP, ABANDONED) if key in current.progress}
    if current.action is CloudAction.SNAPSHOT and current.status is Status.IN_PROGRESS:
        progress[ABANDONED] = [*progress.get(ABANDONED, ()), current.desired_generation]
    return progress
