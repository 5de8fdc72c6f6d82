"""Entries of clouds.yaml: the logins of Stoker at other services."""

from __future__ import annotations

import warnings
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from stoker.model.errors import Invalid

if TYPE_CHECKING:
    from keystoneauth1.session import Session
    from openstack.config.cloud_region import CloudRegion

#: Seconds that a service may take to answer a request, unless the entry sets ``api_timeout``.
_TIMEOUT = 10


def open_session(name: str, setting: str) -> Session:
    """Return a session with the login of an entry. Raises Invalid with the name of the setting that names it."""
    session: Session = find(name, setting).get_session()
    return session


def read(name: str, setting: str) -> Mapping[str, Any]:
    """Return the values of an entry, with an ``api_timeout`` in seconds. Raises Invalid as ``open_session``."""
    values: Mapping[str, Any] = find(name, setting, can_log_in=False).config
    return values


def find(name: str, setting: str, *, can_log_in: bool = True) -> CloudRegion:
    """Return an entry; with ``can_log_in``, only one of a Keystone. Raises Invalid as ``open_session``."""
    from openstack.config import OpenStackConfig  # imported late, because the import takes 0.2 s
    from openstack.exceptions import ConfigException

    warnings.filterwarnings("ignore", "Support for InfluxDB", module="openstack")
    try:
        entry = OpenStackConfig().get_one(cloud=name, validate=can_log_in)
    except ConfigException as error:
        raise Invalid(f"the setting {setting} names {name!r}, which is invalid in clouds.yaml: {error}") from None
    entry.config["api_timeout"] = entry.config.get("api_timeout") or _TIMEOUT
    return entry
