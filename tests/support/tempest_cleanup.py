"""
Removes what runs of `make tempest` left at the cloud, also runs that were killed.

All runs have the same site secret, so their objects have the marker of one site, which no other site uses.
"""

from __future__ import annotations

import time
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from keystoneauth1.identity import v3
from keystoneauth1.session import Session

from stoker.backends.garbage_collector import CollectedObject
from stoker.settings import Settings
from stoker.store.open import Store
from stoker_openstack.cloud import sweep
from stoker_openstack.cloud.client import Access, CloudClient, create_breakers
from stoker_openstack.cloud.keystone import KeystoneLogin, KeystoneTrusts
from stoker_openstack.cloud.markers import site_id
from support import databases
from support.keystone import Keystone

SITE_SECRET = "the site secret of all runs of make tempest"
_SITE = site_id(SITE_SECRET.encode())
#: Seconds for the deletion of all stacks, and of what remains after them.
_STACKS, _REST = 180, 120


@dataclass(frozen=True)
class Cleaner:
    """What the removal needs: the logins of the administrator and of the tests, Stoker's settings, and its domain."""

    keystone: Keystone
    logins: Mapping[str, Mapping[str, str]]
    settings: Settings
    domain: str
    domain_admin: str

    def delete_stacks(self, url: str) -> None:
        """Delete all stacks of the Stoker at ``url``, and wait until they are gone, up to a limit."""
        end = time.monotonic() + _STACKS
        while any([self._delete_stacks(url, login) for login in self.logins.values()]) and time.monotonic() < end:
            time.sleep(2)

    def clean(self, folder: Path) -> list[str]:
        """
        Delete trusts, users and marked objects until nothing is left, up to a limit; return what is left.

        A database without rows in ``folder`` makes every marked object an orphan.
        """
        end = time.monotonic() + _REST
        folder.mkdir(exist_ok=True)
        url = databases.sqlite_url(folder, databases.sqlite_template())
        while left := [f"{item.what}: {item.problem or 'being deleted'}" for item in self._sweep(url)]:
            if time.monotonic() > end:
                return left
            time.sleep(2)
        return left

    def _delete_stacks(self, url: str, login: Mapping[str, str]) -> bool:
        """Request the deletion of each stack of a project; return whether there is any."""
        session = Session(auth=v3.Password(**login))
        root = f"{url}/v1/{session.get_project_id()}/stacks"
        stacks = session.get(root, params={"show_hidden": "true"}, raise_exc=False).json().get("stacks", ())
        for stack in stacks:
            if stack["stack_status"] != "DELETE_IN_PROGRESS":
                session.delete(f"{root}/{stack['stack_name']}/{stack['id']}", raise_exc=False)
        return bool(stacks)

    def _sweep(self, database: str) -> Iterator[CollectedObject]:
        """Delete what is left once, and yield it."""
        store = Store(database, keys=databases.keys)
        try:
            for name, login in self.logins.items():
                client = CloudClient(name, lambda login=login: _access(login), create_breakers(name))
                yield from sweep.collect(store, client, _SITE, dry_run=False)
        finally:
            store.close()
        trusts = KeystoneTrusts(KeystoneLogin(self.settings))
        for trust_id, _ in list(trusts.list_all(_SITE)):
            yield CollectedObject(f"trust {trust_id}", trusts.delete(trust_id))
        domain = self.keystone.named("domains", self.domain)["id"]
        for kind in ("users", "projects"):
            for item in self.keystone.request("GET", f"/{kind}?domain_id={domain}")[kind]:
                if item["name"] != self.domain_admin:
                    self.keystone.request("DELETE", f"/{kind}/{item['id']}")
                    yield CollectedObject(f"{kind[:-1]} {item['name']} of the domain {self.domain}", None)


def _access(login: Mapping[str, Any]) -> Access:
    return Access(Session(auth=v3.Password(**login)), "RegionOne")
