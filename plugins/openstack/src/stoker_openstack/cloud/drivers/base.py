"""
The base of drivers: what is the same for all kinds of objects.

A driver is convergent. It compares the specification with the object at the cloud, sends the first request that is
missing, and either has finished or waits until the cloud has carried out the request; then it is called again. A driver
has no state: an interrupted action continues from the row and from the object.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import TYPE_CHECKING, Any

from msgspec import Struct

from stoker_openstack.cloud.client import CloudClient
from stoker_openstack.cloud.errors import CloudFailure, CloudRefused, RetryLater
from stoker_openstack.cloud.markers import Marker
from stoker_openstack.cloud.names import CloudLogin, not_found
from stoker_openstack.cloud.nouns import Noun
from stoker_openstack.model import CloudAction, CloudKind, CloudObject, body_of, own_metadata

if TYPE_CHECKING:
    from stoker_openstack.cloud.drivers.snapshots import Snapshots

#: Keys of ``CloudObject.progress``: when a create request was sent whose answer is not stored yet; since when the
#: service refuses a request because of the state of the object.
SENT_AT, CONFLICT_SINCE = "sent_at", "conflict_since"
#: Key of ``CloudObject.progress``, which outlasts the action: when the result of a create request was given up. The
#: service may still carry the request out.
GIVEN_UP = "given_up"
#: Key of ``CloudObject.progress``: the generations of superseded snapshots, whose results are to be deleted.
ABANDONED = "abandoned_snapshots"
#: Note: the object is stored before its deletion.
STORED = "stored"
#: How long a create request without an answer may take until its object is visible.
_SETTLING = timedelta(seconds=15)
#: How long a request is repeated that the service refuses because of the state of the object, and the pause between.
_CONFLICT_LIMIT, _CONFLICT_PAUSE = timedelta(minutes=2), 2.0
#: The fault of a broken object whose service gives no reason.
UNKNOWN_FAULT = '"Unknown"'


class Done(Struct, frozen=True):
    """The action is complete. ``observed`` None keeps the stored representation; ``is_gone``: the object is deleted."""

    observed: Mapping[str, Any] | None = None
    is_gone: bool = False


@dataclass(frozen=True, slots=True)
class Wait:
    """
    The cloud carries out a request. ``source`` names the list in which the object is polled (the key of a noun).

    ``polled_id`` is its id there, if it differs from the external id.
    """

    source: str
    reason: str = ""
    observed: Mapping[str, Any] | None = None
    polled_id: str | None = None


Result = Done | Wait
#: The object is polled again in the same list.
STILL_WAITING = Wait("")


@dataclass(slots=True)
class Run:
    """One call of a driver. ``object`` is the row as it was when the call began, with the changes of ``note``."""

    object: CloudObject
    noun: Noun
    login: CloudLogin
    marker: Marker
    #: Stores a change of the row at once: (external id or None, observed or None, progress).
    store: Callable[[str | None, Mapping[str, Any] | None, Mapping[str, Any]], CloudObject]
    #: Returns the site's time.
    now: Callable[[], datetime]

    @property
    def client(self) -> CloudClient:
        """The client of the login."""
        return self.login.client

    @property
    def specification(self) -> Mapping[str, Any]:
        """The desired state."""
        return self.object.specification

    @property
    def progress(self) -> Mapping[str, Any]:
        """What the driver noted about this action."""
        return self.object.progress

    @property
    def name(self) -> str:
        """The name of the object at the cloud."""
        return str(self.specification.get("name") or self.object.name)

    @property
    def external_id(self) -> str:
        """The id of the object at the cloud, which must exist."""
        assert self.object.external_id is not None
        return self.object.external_id

    def send(self, verb: str, path: str = "", body: Any = None, **options: Any) -> Any:
        """
        Send a request to the object at the cloud, and return the response. ``path`` follows that of the object, and
        ``options`` are those of ``CloudClient.request``.
        """
        path = f"{self.noun.path}/{self.external_id}{path}"
        return self.client.request(self.noun.service, verb, path, body, **options)

    def note(self, **progress: Any) -> None:
        """Store notes; None removes one."""
        self.object = self.store(None, None, _changed(self.progress, progress))

    def record_created(self, external_id: str, observed: Mapping[str, Any]) -> None:
        """Store the id that the cloud gave the new object."""
        self.object = self.store(external_id, observed, _changed(self.progress, {SENT_AT: None}))


class Driver:
    """
    A driver of one kind of objects, which its noun finds and deletes.

    A driver of objects that no list has, such as the interfaces of a router, replaces ``read``, ``find_created``,
    ``request`` and ``delete``.
    """

    kind: CloudKind
    noun: Noun
    #: What SNAPSHOT and the deletion policy Snapshot create; None: objects of this kind have none.
    snapshots: Snapshots | None = None
    #: Members of the service's representation that are not stored.
    confidential: Collection[str] = ()
    #: The states of broken objects, and of objects that the service is changing.
    broken: Collection[str] = ()
    changing: Collection[str] = ()

    def may_pass(self, run: Run, error: CloudRefused) -> bool:
        """Return whether a service refused a request only for the present state of the object."""
        return error.status == 409 and run.object.action is CloudAction.DELETE

    def adopt(self, run: Run) -> Result:
        """Take over the object with the external id. Sends no request that changes the object."""
        observed = self.read(run)
        if observed is None:
            raise not_found(self.noun.title, run.external_id)
        return self.check(run, observed)

    def remove(self, run: Run) -> Result:
        """Delete the object; done when the cloud no longer has it."""
        if SENT_AT in run.progress and _find_sent(self, run) is None:
            run.note(**{SENT_AT: None, GIVEN_UP: run.now().isoformat()})
        if run.object.external_id is None:
            return Done(is_gone=True)
        try:
            if self.snapshots and run.object.arguments.get("snapshot") and not run.progress.get(STORED):
                return self.snapshots.store_before_deletion(run)
            return self.delete(run) or Done(is_gone=True)
        except CloudRefused as error:
            if error.status == 404:
                return Done(is_gone=True)
            raise

    def check(self, run: Run, observed: Mapping[str, Any]) -> Result:
        """Fail if the object is broken; wait while the service changes it."""
        return await_stable(self, observed) or Done(observed)

    def fault_of(self, observed: Mapping[str, Any]) -> str | None:
        """Return what the service says of a broken object, in quotation marks; None if the object is not broken."""
        return UNKNOWN_FAULT if observed.get("status") in self.broken else None

    def is_changing(self, observed: Mapping[str, Any]) -> bool:
        """Return whether the service is changing the object."""
        return observed.get("status") in self.changing

    def carry_out(self, run: Run, observed: Mapping[str, Any], action: CloudAction) -> Result:
        """Continue an action that only some kinds have."""
        if self.snapshots is not None and action is CloudAction.SNAPSHOT:
            return self.snapshots.create(run, observed)
        if self.snapshots is not None and action is CloudAction.DELETE_SNAPSHOT:
            return self.snapshots.delete(run)
        raise CloudFailure(f"A {self.noun.title} has no action {action.value.upper()}.")

    def judge(self, item: CloudObject, observed: Mapping[str, Any] | None, now: datetime) -> Result | None:
        """
        Decide, without requests, what the state of an object in the polled list means; ``observed`` None: the list
        lacks it. None: the driver has to be called.

        Raises CloudFailure if the action failed.
        """
        if self.snapshots is not None and item.awaits == self.snapshots.noun.key:  # also before a deletion
            return None if self.snapshots.is_complete(observed) else STILL_WAITING
        if item.action is CloudAction.DELETE:
            return self.judge_deletion(item, observed, now)
        return None if observed is None else await_stable(self, observed)

    def judge_deletion(self, item: CloudObject, observed: Mapping[str, Any] | None, now: datetime) -> Result | None:
        """Do the same as ``judge`` for an object that is being deleted."""
        return None

    def read(self, run: Run) -> Mapping[str, Any] | None:
        """Return the object with the external id; None if the cloud has none."""
        return self.noun.find(run.client, run.external_id)

    def find_created(self, run: Run) -> Mapping[str, Any] | None:
        """
        Return the object with the marker of the resource, which an earlier request created; None without one.

        None also for objects that no list has, whose request can be repeated.
        """
        return self.noun.find_marked(run.client, run.marker, run.name) if self.noun.key else None

    def request(self, run: Run) -> tuple[str, Mapping[str, Any]]:
        """Send the create request; return the id and the representation of the new object. ``update`` follows."""
        created = self.noun.create(run.client, self.body(run))
        return str(created[self.noun.id_key]), created

    def body(self, run: Run) -> dict[str, Any]:
        """Return the members of the object for the create request."""
        return members_of(run.specification)

    def update(self, run: Run, observed: Mapping[str, Any]) -> Result:
        """Change the object to its specification; without an own implementation, the object cannot be changed."""
        return Done(observed)

    def delete(self, run: Run) -> Wait | None:
        """Delete the object with the external id, which the service may no longer have; None: it is gone."""
        self.noun.delete(run.client, run.external_id)
        return None


def act(driver: Driver, run: Run) -> Result:
    """
    Continue the action in progress.

    Raises CloudFailure if the action failed, RetryLater, ServiceUnavailable, and ServiceRejected for the login.
    """
    if driver.snapshots is not None:
        driver.snapshots.delete_abandoned(run)
    action = run.object.action
    if action is CloudAction.ENSURE:
        return _ensure(driver, run)
    if action is CloudAction.DELETE:
        return driver.remove(run)
    if action is CloudAction.ADOPT:
        return driver.adopt(run)
    observed = driver.read(run) if run.object.external_id else None
    if observed is None:
        raise not_found(driver.noun.title, run.object.external_id or run.object.name)
    return driver.check(run, observed) if action is CloudAction.CHECK else driver.carry_out(run, observed, action)


def _ensure(driver: Driver, run: Run) -> Result:
    """Create the object, or change it to its specification."""
    observed = None
    if run.object.external_id is not None:
        observed = driver.read(run)
        if observed is None and run.object.observed_generation > 0:
            raise not_found(driver.noun.title, run.object.external_id)
    if observed is None and SENT_AT in run.progress:
        observed = _find_sent(driver, run)
    if observed is None:
        now = run.now().isoformat()
        run.note(**{SENT_AT: now, **({GIVEN_UP: now} if SENT_AT in run.progress else {})})
        external_id, observed = driver.request(run)
        run.record_created(external_id, observed)
    return driver.update(run, observed)


def _find_sent(driver: Driver, run: Run) -> Mapping[str, Any] | None:
    """Find the object of an earlier create request whose answer was lost."""
    match = driver.find_created(run)
    if match is not None:
        run.record_created(str(match[driver.noun.id_key]), match)
        return match
    sent_at = datetime.fromisoformat(run.progress[SENT_AT])
    if run.now() - sent_at < _SETTLING:
        raise RetryLater("Waiting for the result of an interrupted request", 2.0)
    return None


def members_of(specification: Mapping[str, Any]) -> dict[str, Any]:
    """Return the specification without the keys for the driver, and without members that have no value."""
    return {key: value for key, value in body_of(specification).items() if value is not None}


def texts_of(values: Mapping[str, Any] | None) -> dict[str, str]:
    """Return names and values as texts, which metadata and headers consist of."""
    return {str(name): str(value) for name, value in (values or {}).items()}


def set_metadata(run: Run, observed: Mapping[str, Any], foreign: Collection[str] = ()) -> None:
    """
    Set the metadata of the specification and the marker; of an adopted object that keeps its metadata, the marker.

    ``foreign`` are keys that the service sets.
    """
    desired = texts_of(run.specification.get("metadata"))
    present = own_metadata(observed["metadata"])
    if "metadata" in run.specification and any(
        desired.get(key) != present.get(key) for key in {*desired, *present} - set(foreign)
    ):
        run.send("PUT", "/metadata", {"metadata": {**desired, **run.marker.metadata}})
    elif run.marker.metadata.items() - observed["metadata"].items():
        run.send("POST", "/metadata", {"metadata": run.marker.metadata})


def set_tags(run: Run, observed: Mapping[str, Any], tags: Sequence[str]) -> None:
    """Set the tags of an object of Nova or Neutron."""
    if not is_same(tags, observed.get("tags")):
        run.send("PUT", "/tags", {"tags": list(tags)})


def await_stable(driver: Driver, observed: Mapping[str, Any]) -> Wait | None:
    """
    Return None for a stable object; otherwise wait.

    Raises CloudFailure with Heat's text if the service says that the object is broken.
    """
    fault = driver.fault_of(observed)
    if fault is not None:
        text = f"Went to status {observed['status']} due to {fault}"
        raise CloudFailure(text, "ResourceInError", observed=observed)
    return Wait(driver.noun.key, observed=observed) if driver.is_changing(observed) else None


def await_state(run: Run, error: CloudRefused) -> None:
    """
    Let the action wait, because the service refused a request only for the present state of the object.

    Raises RetryLater; raises ``error`` if the service has refused the request for two minutes.
    """
    now = run.now()
    since = run.progress.get(CONFLICT_SINCE)
    if since is None:
        run.note(**{CONFLICT_SINCE: now.isoformat()})
    elif now - datetime.fromisoformat(since) > _CONFLICT_LIMIT:
        raise error
    raise RetryLater(f"Waiting: {error}", _CONFLICT_PAUSE)


def is_same(desired: Any, observed: Any) -> bool:
    """
    Return whether an observed value satisfies the desired one.

    An observed mapping may have more keys; lists have no order; None, empty texts and empty lists are equal.
    """
    if isinstance(desired, Mapping):
        return isinstance(observed, Mapping) and all(
            is_same(value, observed.get(key)) for key, value in desired.items()
        )
    if isinstance(desired, (list, tuple)):
        left = list(observed or ())
        if len(left) != len(desired):
            return False
        for value in desired:
            match = next((i for i, other in enumerate(left) if is_same(value, other)), None)
            if match is None:
                return False
            del left[match]
        return True
    if desired in (None, "", {}) and observed in (None, "", [], {}):
        return True
    return desired == observed or (
        not isinstance(desired, bool) and not isinstance(observed, bool) and str(desired) == str(observed)
    )


def differences(desired: Mapping[str, Any], observed: Mapping[str, Any]) -> dict[str, Any]:
    """Return the members whose observed values do not satisfy the desired ones."""
    return {name: value for name, value in desired.items() if not is_same(value, observed.get(name))}


def _changed(notes: Mapping[str, Any], changes: Mapping[str, Any]) -> dict[str, Any]:
    return {key: value for key, value in {**notes, **changes}.items() if value is not None}
