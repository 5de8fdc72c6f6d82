"""What the jobs of a cloud share."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime

from stoker.backends.reconciler import JobKinds
from stoker.store.open import Store
from stoker.store.tx import Tx
from stoker.work import Work
from stoker_openstack.cloud.credentials import Credentials
from stoker_openstack.cloud.drivers.base import Registry
from stoker_openstack.model import CloudObject

#: The jobs of the reconciler for clouds, which have threads of their own, and the job that polls.
JOBS = JobKinds("cloud.reconcile", "cloud.prepare", threads=8)
POLL = "cloud.poll"


@dataclass(frozen=True, slots=True)
class CloudContext:
    """The services and objects of which the jobs of one site are made. ``site``: its public id."""

    store: Store
    work: Work
    credentials: Credentials
    registry: Registry
    site: str

    def project_of(self, item: CloudObject) -> str | None:
        """Return the project whose objects are listed together with an object; None: the objects of all projects."""
        return None if self.credentials.is_shared else item.project_id

    def defer_poll(self, tx: Tx, item: CloudObject, at: datetime) -> None:
        """Poll the objects that wait in the project of an object, unless a poll at an earlier time is pending."""
        project_id = self.project_of(item)
        self.work.defer_by(tx, POLL, project_id or "site", {"project_id": project_id}, at)
