"""
Remote objects: objects in an external Swift and queues in an external Zaqar, with a driver for each kind.

``RemoteObjects`` records the desired state (``remote_objects``: desired and observed generation);
``RemoteObjectController`` applies it through a ``BackendDriver``.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Any, Protocol

from stoker.backends.reconciler import request
from stoker.backends.result_polling import POLL, SOON, Result
from stoker.messaging.signed_urls import AGENTS_PERIOD, agents_until
from stoker.model.deployment import Owner
from stoker.store import documents, remote_objects, resources, stacks
from stoker.store.open import Store
from stoker.store.remote_objects import RemoteObject
from stoker.store.tx import Tx
from stoker.transports.base import ObjectRef, TransportTarget
from stoker.work import Work

#: Kind of the jobs that renew the signed URL of an object's agent.
RENEW = "remote_object.renew"
#: Key of a remote object's details: the signed URL of its resource's agent; None if the service does not sign URLs.
AGENT = "agent"
#: Margin after a URL's renewal time, so that this time has passed in the process that signs, too.
_AFTER = timedelta(seconds=2)
#: Records that the state of the object was applied, with the driver's details.
Record = Callable[[Tx, RemoteObject, Mapping[str, Any]], None]


class BackendDriver(Protocol):
    """
    Requests to one external service, called by jobs.

    All methods raise ServiceUnavailable if the service is unreachable, and ServiceRejected if an operator has to
    correct the cause. Example of a driver for a directory of files::

        class Files:
            def __init__(self, folder):
                self.folder = folder

            def prepare(self):
                self.folder.mkdir(exist_ok=True)

            def apply(self, remote_object):
                self.folder.joinpath(remote_object.name).write_text(remote_object.body or "")
                return {}

            def remove(self, remote_object):
                self.discard(remote_object.name)

            def close(self):
                pass

            def names(self):
                yield [path.name for path in self.folder.iterdir()]

            def discard(self, name):
                self.folder.joinpath(name).unlink(missing_ok=True)

            def poll(self, remote_object, since):
                return []  # agents return no results this way

            def acknowledge(self, remote_object, results):
                pass
    """

    def prepare(self) -> None:
        """Create what all remote objects need, such as a container."""

    def apply(self, remote_object: RemoteObject) -> Mapping[str, Any]:
        """
        Apply the desired state, whatever an earlier attempt achieved. Returns the details to store with the object.
        """
        ...

    def remove(self, remote_object: RemoteObject) -> None:
        """Remove the object from the service. An object that does not exist is no error."""

    def close(self) -> None:
        """Close the connections. The driver is not used afterwards."""

    def names(self) -> Iterator[list[str]]:
        """Yield the names of the objects in places that belong to Stoker alone, in pages."""
        ...

    def discard(self, name: str) -> None:
        """Remove an object that ``names`` returned."""

    def poll(self, remote_object: RemoteObject, since: datetime) -> list[Result]:
        """Return the results since this time that were not stored yet, in their order."""
        ...

    def acknowledge(self, remote_object: RemoteObject, results: list[Result]) -> None:
        """Called after the results were stored in the database; may delete them from the service."""


class RemoteObjects:
    """Records the desired state of remote objects, inside transactions."""

    def __init__(self, work: Work) -> None:
        self._work = work

    def open(
        self,
        tx: Tx,
        kind: str,
        name: str,
        target: TransportTarget,
        *,
        apply: bool = False,
        signed_method: str | None = None,
    ) -> None:
        """
        Record that the object shall exist.

        ``apply``: it must be created before use. ``signed_method``: the method for which a URL is to be signed.
        """
        by_itself = not apply and signed_method is None
        id, due = remote_objects.set_desired(
            tx, kind, name, target.project_id, target.resource_id, signed_method=signed_method, has_polling=by_itself
        )
        if due:
            request(self._work, tx, kind, id)

    def put(self, tx: Tx, kind: str, name: str, target: TransportTarget, body: str) -> None:
        """Record the object's new content. Only the latest content is applied, however many changes precede the job."""
        id, _ = remote_objects.set_desired(tx, kind, name, target.project_id, target.resource_id, body)
        request(self._work, tx, kind, id)

    def close(self, tx: Tx, kind: str, name: str) -> None:
        """Record that the object shall not exist."""
        id = remote_objects.mark_removed(tx, kind, name)
        if id is not None:
            request(self._work, tx, kind, id)

    def listen(self, tx: Tx, kind: str, name: str, until: datetime | None = None) -> None:
        """Poll the object for the result of the run that begins; with ``until``, poll for signals until that time."""
        at = tx.now + SOON
        remote_objects.start_polling(tx, at, SOON, until, kind, name)
        # Pending jobs are not cancelled: a steady stream of runs would postpone the polls indefinitely.
        self._work.defer(tx, POLL, kind, {"kind": kind}, at=at)


class RemoteObjectController:
    """The controller for one kind of remote objects; see ``reconciler.Controller``."""

    def __init__(self, store: Store, work: Work, kind: str, driver: BackendDriver) -> None:
        self._store = store
        self._work = work
        self._kind = kind
        self._driver = driver
        work.register(RENEW, self._renew)

    def prepare(self) -> None:
        self._driver.prepare()

    def pending(self, tx: Tx) -> Sequence[str]:
        return remote_objects.pending(tx, self._kind)

    def reconcile(self, id: str, rejections: int) -> None:
        """
        Apply the desired state. Notify the resource of a new signed URL, and schedule its renewal before it expires.
        """
        with self._store.read() as tx:
            remote_object = remote_objects.find(tx, id)
        if remote_object is not None and remote_object.observed_generation != remote_object.desired_generation:
            record = remote_objects.set_observed if remote_object.signed_method is None else self._record_signed
            apply(self._store, self._driver, remote_object, record)

    def _record_signed(self, tx: Tx, remote_object: RemoteObject, details: Mapping[str, Any]) -> None:
        resource = resources.find(tx, remote_object.resource_id)
        if resource is not None:  # the lock order requires the stack before all other rows
            stacks.find(tx, resource.stack_id, for_update=True)
        remote_objects.set_observed(tx, remote_object, details)
        if remote_object.body is None:  # a document is published again long before the URL expires
            at = agents_until(remote_object.resource_id, tx.now) - 2 * AGENTS_PERIOD + _AFTER
            args = {"kind": remote_object.kind, "id": remote_object.id}
            self._work.defer_once(tx, RENEW, remote_object.id, args, at=at)
        if AGENT not in remote_object.details or details.get(AGENT) != remote_object.details[AGENT]:
            _wake(tx, remote_object.resource_id)

    def _renew(self, args: Mapping[str, Any]) -> None:
        """Job: sign a new URL for the agent of a remote object."""

        def do(tx: Tx) -> None:
            if remote_objects.renew(tx, args["id"]):
                request(self._work, tx, args["kind"], args["id"])

        self._store.write(do)


def _wake(tx: Tx, resource_id: str) -> None:
    """Wake a resource for whose agent a URL was signed or refused, and publish the document with the URL."""
    tx.wake(Owner.resource(resource_id))
    resource = resources.find(tx, resource_id)
    server_id = (resource.physical_id or resource.id) if resource is not None else ""
    if documents.revision(tx, server_id):
        tx.bump_document(server_id)


def apply(
    store: Store, driver: BackendDriver, remote_object: RemoteObject, record: Record = remote_objects.set_observed
) -> None:
    """Apply the desired state and record the result. Raises ServiceUnavailable and ServiceRejected."""
    if remote_object.is_removed:
        driver.remove(remote_object)
        store.write(lambda tx: remote_objects.delete(tx, remote_object.id, remote_object.desired_generation))
    else:
        details = driver.apply(remote_object)
        store.write(lambda tx: record(tx, remote_object, details))


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
        self.remote_objects.open(tx, *_key(ref), target)

    def put(self, tx: Tx, target: TransportTarget, ref: ObjectRef, data: bytes) -> None:
        self.remote_objects.put(tx, *_key(ref), target, data.decode())

    def close(self, tx: Tx, target: TransportTarget, ref: ObjectRef) -> None:
        self.remote_objects.close(tx, *_key(ref))

    def await_result(self, tx: Tx, target: TransportTarget, ref: ObjectRef, until: datetime | None = None) -> None:
        self.remote_objects.listen(tx, *_key(ref), until)

    def url(self, target: TransportTarget, ref: ObjectRef, verb: str) -> str:
        return (self.versions if ref.versions else self.driver).url(_key(ref)[1], verb)


def _key(ref: ObjectRef) -> tuple[str, str]:
    """Return the kind and the name of an object."""
    return (remote_objects.VERSIONS if ref.versions else remote_objects.OBJECT), f"{ref.container}/{ref.name}"
