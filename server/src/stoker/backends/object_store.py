"""The object store for transports, in an external service with a driver."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime
from typing import Protocol

from stoker.backends.remote_object_controller import BackendDriver, RemoteObjects
from stoker.store import remote_objects
from stoker.store.tx import Tx
from stoker.transports.base import ObjectRef, TransportTarget


class ObjectDriver(BackendDriver, Protocol):
    """A driver for objects, which clients reach by signed URLs."""

    def url(self, name: str, verb: str) -> str:
        """Return a signed URL, without a request. It permits ``verb`` on the object and does not expire before 2038."""
        ...


@dataclass(frozen=True, slots=True)
class ExternalObjects:
    """Implements ``transports.base.Objects``. The service creates an object with the first PUT."""

    remote_objects: RemoteObjects
    driver: ObjectDriver
    #: The driver for objects whose every version counts.
    versions: ObjectDriver

    def open(self, tx: Tx, target: TransportTarget, ref: ObjectRef, owner: str) -> None:
        self.remote_objects.open(tx, _kind(ref), _name(ref), target)

    def put(self, tx: Tx, target: TransportTarget, ref: ObjectRef, data: bytes) -> None:
        self.remote_objects.put(tx, _kind(ref), _name(ref), target, data.decode())

    def close(self, tx: Tx, target: TransportTarget, ref: ObjectRef) -> None:
        self.remote_objects.close(tx, _kind(ref), _name(ref))

    def await_result(self, tx: Tx, target: TransportTarget, ref: ObjectRef, until: datetime | None = None) -> None:
        self.remote_objects.listen(tx, _kind(ref), _name(ref), until)

    def url(self, target: TransportTarget, ref: ObjectRef, verb: str) -> str:
        return (self.versions if ref.versions else self.driver).url(_name(ref), verb)


def _kind(ref: ObjectRef) -> str:
    return remote_objects.VERSIONS if ref.versions else remote_objects.OBJECT


def _name(ref: ObjectRef) -> str:
    return f"{ref.container}/{ref.name}"
