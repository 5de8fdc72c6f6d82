"""The interface of clouds, which resource types of servers, networks and volumes use."""

from __future__ import annotations

from typing import Protocol

from stoker.resources.base import Context
from stoker.store.tx import Tx
from stoker_openstack.model import CloudObject, CloudRequest


class Cloud(Protocol):
    """
    A cloud that has servers, networks and volumes.

    Calls act inside a transaction and perform no I/O: a cloud elsewhere defers a job, and calls the resource's
    ``check`` whenever the action has ended. A cloud of rows may end the action at once.
    """

    def request(self, tx: Tx, request: CloudRequest) -> CloudObject:
        """
        Record the desired state of an object, and start the action. Returns the object: IN_PROGRESS, COMPLETE or
        FAILED. A newer request replaces one in progress.
        """
        ...

    def find(self, tx: Tx, id: str) -> CloudObject | None:
        """Return the object of a resource; None if there is none, or if it was deleted."""
        ...

    def forget(self, tx: Tx, id: str) -> None:
        """Drop the record of an object and leave the object itself as it is."""


def find_cloud(context: Context) -> Cloud | None:
    """Return the site's cloud; None if none is configured."""
    cloud: Cloud | None = context.env.provider.offered.get(Cloud)
    return cloud
