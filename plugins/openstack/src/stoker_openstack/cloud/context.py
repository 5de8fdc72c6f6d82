"""What the jobs of a cloud share."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from datetime import datetime
from typing import TYPE_CHECKING, Any, TypeVar

from stoker.backends.reconciler import JobKinds, request
from stoker.store.open import Store
from stoker.store.tx import Tx
from stoker.work import Work
from stoker_openstack.cloud.client import CloudClient
from stoker_openstack.cloud.credentials import SiteCredentials
from stoker_openstack.cloud.drivers.base import Driver
from stoker_openstack.cloud.errors import INTERNAL_ERROR, CloudFailure, CloudRefused
from stoker_openstack.model import CloudKind, CloudObject

if TYPE_CHECKING:
    from stoker_openstack.cloud.delegated_credentials import DelegatedCredentials

T = TypeVar("T")
#: The jobs of the reconciler for clouds, which have threads of their own, and the job that polls.
JOBS = JobKinds("cloud.reconcile", "cloud.prepare", threads=8)
POLL = "cloud.poll"
#: The job that searches for late objects. Its key is the id of the root stack, whose credentials it needs.
LATE_OBJECTS = "cloud.late_objects"


@dataclass(frozen=True, slots=True)
class CloudContext:
    """The services and objects of which the jobs of one site are made. ``site``: its public id."""

    store: Store
    work: Work
    credentials: SiteCredentials | DelegatedCredentials
    drivers: Mapping[CloudKind, Driver]
    site: str

    @property
    def services(self) -> list[str]:
        """The services of the drivers."""
        return sorted({driver.noun.service for driver in self.drivers.values()})

    def kinds_of(self, service: str) -> list[CloudKind]:
        """Return the kinds of objects that a service has."""
        return [kind for kind, driver in self.drivers.items() if driver.noun.service == service]

    def represent(self, kind: CloudKind, observed: Mapping[str, Any]) -> Mapping[str, Any]:
        """Return what is stored of a service's representation."""
        confidential = self.drivers[kind].confidential
        return {key: value for key, value in observed.items() if key not in confidential}

    def project_of(self, item: CloudObject) -> str | None:
        """Return the project whose objects are listed together with an object; None: the objects of all projects."""
        return None if self.credentials.is_shared else item.project_id

    def read_first(
        self,
        root_ids: Iterable[str],
        read: Callable[[CloudClient], T],
        refuse: Callable[[str, CloudFailure], None],
    ) -> T | None:
        """
        Return what ``read`` returns with the first login that is valid; None without a valid one.

        ``root_ids`` are those of the trees of stacks with a login; ``refuse`` is called with one whose login is not
        valid. Raises CloudRefused for an internal error of the service.
        """
        for root_id in dict.fromkeys(root_ids):
            try:
                return read(self.credentials.open(root_id).client)
            except CloudFailure as error:
                if isinstance(error, CloudRefused) and error.status >= INTERNAL_ERROR:
                    raise
                refuse(root_id, error)
        return None

    def request_driver(self, tx: Tx, item: CloudObject, at: datetime | None = None) -> None:
        """Defer the job that calls the driver of an object, at once or at a time."""
        request(self.work, tx, self.drivers[item.kind].noun.service, item.id, JOBS, at)

    def defer_poll(self, tx: Tx, item: CloudObject, at: datetime) -> None:
        """Poll the objects that wait in the project of an object, unless a poll at an earlier time is pending."""
        project_id = self.project_of(item)
        self.work.defer_by(tx, POLL, project_id or "site", {"project_id": project_id}, at)
