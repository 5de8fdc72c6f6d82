"""Resolves a project's name or id to its id, so that a policy never names a project that does not exist."""

from __future__ import annotations

import re
from typing import Protocol

from stoker.model.errors import Invalid
from stoker.store import identity
from stoker.store.tx import Tx

#: An id in Keystone's format, or a UUID.
_KEYSTONE_ID = re.compile(r"[0-9a-f]{32}|[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}")
_DEFAULT_DOMAIN = "default"


class ProjectLookup(Protocol):
    """Resolves the project references in policies."""

    def resolve(self, tx: Tx, ref: str) -> str:
        """The id of the project with this id or name. Raises Invalid."""
        ...


class OwnProjects:
    """Resolves projects of Stoker's own identity service."""

    def resolve(self, tx: Tx, ref: str) -> str:
        """Return the id of the project with this id, or with this name in the default domain. Raises Invalid."""
        project = identity.project(tx, ref) or identity.find_project_by_name(tx, ref, _DEFAULT_DOMAIN)
        if project is None:
            raise Invalid(f"there is no project {ref!r:.100}: give the id or the name of one (`stoker project list`)")
        return project.id


class KeystoneProjects:
    """Accepts ids of Keystone projects only, because a transaction must not wait for Keystone."""

    def resolve(self, tx: Tx, ref: str) -> str:
        """Return ``ref`` if it has the form of an id. Raises Invalid."""
        if not _KEYSTONE_ID.fullmatch(ref):
            raise Invalid(f"{ref!r:.100} is no project id: give the id (`openstack project show -c id`), not the name")
        return ref
