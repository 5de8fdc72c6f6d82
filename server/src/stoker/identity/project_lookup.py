"""Resolves a project's name or id to its id, so that a policy never names a project that does not exist."""

from __future__ import annotations

import re

from stoker.model.errors import Invalid
from stoker.store import identity
from stoker.store.tx import Tx

#: An id in Keystone's format, or a UUID.
_KEYSTONE_ID = re.compile(r"[0-9a-f]{32}|[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}")
_DEFAULT_DOMAIN = "default"


def find_own_project(tx: Tx, ref: str) -> str:
    """
    Return the id of Stoker's own project with this id, or with this name in the default domain. Raises Invalid.
    """
    project = identity.project(tx, ref) or identity.find_project_by_name(tx, ref, _DEFAULT_DOMAIN)
    if project is None:
        raise Invalid(f"there is no project {ref!r:.100}: give the id or the name of one (`stoker project list`)")
    return project.id


def check_keystone_project(_: Tx, ref: str) -> str:
    """
    Return ``ref``, which must have the form of an id: a transaction must not wait for Keystone. Raises Invalid.
    """
    if not _KEYSTONE_ID.fullmatch(ref):
        raise Invalid(f"{ref!r:.100} is no project id: give the id (`openstack project show -c id`), not the name")
    return ref
