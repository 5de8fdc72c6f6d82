"""A site with the provider ``openstack``, without HTTP and resource types: a store, jobs and one stack."""

from __future__ import annotations

import os
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any
from uuid import uuid4

import pytest

from stoker import settings
from stoker.model.stack import Status
from stoker.store.open import Store
from stoker.store.tx import Tx, TxCallbacks
from stoker.work import Work
from stoker_openstack.cloud.context import LATE_OBJECTS
from stoker_openstack.model import CloudAction, CloudKind, CloudObject
from stoker_openstack.provider import OpenStackCloud, create_context, start
from stoker_openstack.store import cloud_objects
from support import query
from support.stacks import world
from support.templates import config, template
from support.waiting import until

SECRET = b"the secret of the site of these tests"


class CloudSite:
    """The provider of one site. ``woken`` counts how often the resources were checked."""

    project_id = "p"

    def __init__(self, store: Store, folder: Path, cloud: str, stack_id: str = "", **flags: str) -> None:
        self.store, self.work = store, Work(store)
        loaded = settings.load({"state_dir": folder, "cloud": cloud, **flags}, {}, None)
        context = create_context(loaded, store, self.work, SECRET)
        assert context is not None
        self.context, self.cloud = context, OpenStackCloud(context)
        self.stack_id = stack_id or world(store).create(template({"a": config()})).id
        self.woken: dict[str, int] = {}
        # The callbacks of the engine that created the stack, if any, know no cloud.
        store.callbacks.bind(TxCallbacks(resource_woken=self._count))
        start(context)
        self.work.start()
        # The probes of the services, and the requests of a process that was killed, which may be many.
        until(lambda: self._count_jobs() == 0, 600)

    def _count_jobs(self) -> int:
        """Return the number of jobs, except for the searches for late objects, which take an hour."""
        with self.store.read() as tx:
            return int(query.scalar(tx, f"SELECT count(*) FROM jobs WHERE kind <> '{LATE_OBJECTS}'"))

    def _count(self, _tx: Tx, id: str, _wakes: Any) -> None:
        self.woken[id] = self.woken.get(id, 0) + 1

    def request(
        self,
        kind: CloudKind,
        specification: Mapping[str, Any],
        action: CloudAction = CloudAction.ENSURE,
        id: str = "",
        **more: Any,
    ) -> str:
        """Request an action on an object; return the id of its resource."""
        request = CloudObject(
            id=id or str(uuid4()),
            kind=kind,
            action=action,
            project_id=self.project_id,
            root_id=self.stack_id,
            name=str(specification.get("name", "object")),
            specification=specification,
            **more,
        )
        return self.store.write(lambda tx: self.cloud.request(tx, request)).id

    def find(self, id: str) -> CloudObject | None:
        with self.store.read() as tx:
            return cloud_objects.find(tx, id)

    def get(self, id: str) -> CloudObject:
        row = self.find(id)
        assert row is not None
        return row

    def end(self, id: str, seconds: float = 120) -> CloudObject | None:
        """Wait until the action has ended; return the object, None if it is deleted."""
        until(lambda: (row := self.find(id)) is None or row.status is not Status.IN_PROGRESS, seconds)
        return self.find(id)

    def complete(self, id: str) -> CloudObject:
        """Wait until the action is complete."""
        row = self.end(id)
        assert row is not None
        assert row.status is Status.COMPLETE, row.reason
        return row

    def delete(self, id: str) -> None:
        """Delete an object, and wait until the cloud no longer has it."""
        row = self.find(id)
        if row is not None:
            self.request(row.kind, row.specification, CloudAction.DELETE, id)
            left = self.end(id)
            assert left is None, left.reason


@contextmanager
def cloud_site(store: Store, folder: Path, cloud: str, clouds: Path, **flags: str) -> Iterator[CloudSite]:
    """Yield a site whose jobs run. ``clouds`` is a clouds.yaml."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("OS_CLIENT_CONFIG_FILE", str(clouds))
        site = CloudSite(store, folder, cloud, **flags)
        try:
            yield site
        finally:
            site.work.stop()


def real_cloud() -> Path:
    """
    Return the clouds.yaml of a real OpenStack, with the entries ``peer`` and ``peer-demo``.

    Skips the test without one: it needs a database server and 700 MB, so no test run installs it.
    """
    folder = os.environ.get("STOKER_TEST_OPENSTACK_PEER")
    if not folder:
        pytest.skip(
            "STOKER_TEST_OPENSTACK_PEER does not name the directory of an OpenStack (see docs/develop/tests.md)"
        )
    return Path(folder) / "clouds.yaml"
