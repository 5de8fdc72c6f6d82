"""The interface of clouds, which resource types of servers, networks and volumes use."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Protocol

from stoker.model.cloud import CloudAction, CloudKind, CloudObject
from stoker.store.tx import Tx


@dataclass(frozen=True, slots=True, kw_only=True)
class CloudRequest:
    """
    A request to a cloud. ``id`` is the id of the resource; see ``model.cloud.CloudObject`` for ``specification``.

    ``external_id`` names an existing object that the resource takes over (adoption, ``external_id`` of a template).
    """

    id: str
    kind: CloudKind
    action: CloudAction
    project_id: str
    stack_id: str
    name: str
    specification: Mapping[str, Any]
    arguments: Mapping[str, Any] = field(default_factory=dict)
    external_id: str | None = None


class Cloud(Protocol):
    """
    A cloud that has servers, networks and volumes.

    Calls act inside a transaction and perform no I/O: a cloud elsewhere defers a job, and calls the resource's
    ``check`` (``serve.callbacks``) whenever the action has ended. A cloud of rows may end the action at once.
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
