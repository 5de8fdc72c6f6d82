"""Credentials for a cloud: one entry of clouds.yaml for all projects, or delegations of the owners of stacks."""

from __future__ import annotations

from stoker import cloud_entries
from stoker.failures import ServiceUnavailable
from stoker.model.errors import Invalid
from stoker.store.tx import Tx
from stoker_openstack.cloud.client import IDENTITY, NAMES, Access, CloudClient, create_breakers
from stoker_openstack.cloud.names import CloudLogin


class SiteCredentials:
    """One entry of clouds.yaml for all projects. ``name``: of the entry."""

    #: Whether all projects share one login, and thereby one project of the cloud.
    is_shared = True

    def __init__(self, name: str) -> None:
        #: The login for all objects.
        self.login = CloudLogin(CloudClient(name, lambda: open_entry(name), create_breakers(name)))

    def open(self, root_id: str) -> CloudLogin:
        """Return the client for the objects of a tree of stacks. Raises CloudFailure if there are no credentials."""
        return self.login

    def open_project(self, token: str, project_id: str) -> CloudLogin:
        """Return a client that reads in a project before the project has objects. ``token``: of the request."""
        return self.login

    def end_unused(self, tx: Tx, root_id: str) -> None:
        """End the credentials of a deleted tree of stacks without objects; called after something has ended."""


def require_entry(name: str) -> None:
    """Raise Invalid, with the file and its clouds, unless clouds.yaml has an entry ``name``."""
    from openstack.config import OpenStackConfig
    from openstack.exceptions import SDKException

    try:
        config = OpenStackConfig()
    except SDKException as error:
        reason = " ".join(str(error).split())
        raise Invalid(f"cloud is {name!r}, but clouds.yaml cannot be read: {reason}") from None
    names = sorted(str(cloud) for cloud in (config.cloud_config or {}).get("clouds") or {})
    if config.config_filename is None:
        raise Invalid(
            f"cloud is {name!r}, but there is no valid clouds.yaml: write ~/.config/openstack/clouds.yaml or set"
            " OS_CLIENT_CONFIG_FILE"
        )
    if name not in names:
        listed = ", ".join(names) or "none"
        raise Invalid(f"cloud is {name!r}, but {config.config_filename} has no such cloud; its clouds are: {listed}")


def open_entry(name: str) -> Access:
    """Return the access of an entry of clouds.yaml. Raises ServiceUnavailable, as the file may be corrected."""
    try:
        entry = cloud_entries.find(name, "cloud")
    except Invalid as error:
        raise ServiceUnavailable(error.message) from None
    services = (service for service in NAMES if service != IDENTITY)
    endpoints = {service: url for service in services if (url := entry.get_endpoint(service))}
    return Access(entry.get_session(), entry.config.get("region_name"), entry.get_interface(), endpoints)
