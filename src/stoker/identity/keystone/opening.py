"""Keystone as the settings name it: Stoker's own login there, and that of the administrator of stacks' users."""

from __future__ import annotations

from typing import Any

from keystoneauth1.identity import v3
from keystoneauth1.session import Session

from stoker.identity.keystone.client import Client
from stoker.model.errors import Invalid
from stoker.settings import Settings

#: Seconds that Keystone may take to answer.
_PATIENCE = 10


def open_client(settings: Settings) -> Client:
    """Raises Invalid for a cloud that there is not."""
    url = f"{settings.identity_url}/v3"
    if settings.keystone_cloud:
        return Client(_cloud(settings.keystone_cloud), url, "keystone_cloud")
    auth = v3.Password(
        auth_url=url,
        username=settings.keystone_user,
        password=settings.keystone_password,
        project_name=settings.keystone_project,
        user_domain_name=settings.keystone_domain,
        project_domain_name=settings.keystone_domain,
    )
    return Client(_session(auth), url, "keystone_user, keystone_password, keystone_project and keystone_domain")


def open_domain(settings: Settings) -> Session:
    """A session of the administrator of the domain that stacks' users live in."""
    return _session(
        v3.Password(
            auth_url=f"{settings.identity_url}/v3",
            username=settings.stack_domain_admin,
            password=settings.stack_domain_admin_password,
            user_domain_name=settings.stack_user_domain,
            domain_name=settings.stack_user_domain,
        )
    )


def _session(auth: Any) -> Session:
    return Session(auth=auth, timeout=_PATIENCE)


def _cloud(name: str) -> Session:
    try:
        from openstack.config import OpenStackConfig
        from openstack.exceptions import ConfigException
    except ImportError:
        raise Invalid("the setting keystone_cloud needs openstacksdk: pip install 'stoker[openstack]'") from None
    try:
        session = OpenStackConfig().get_one(cloud=name).get_session()
    except ConfigException as error:
        raise Invalid(f"the setting keystone_cloud names {name!r}, which clouds.yaml has not right: {error}") from None
    session.timeout = _PATIENCE
    return session
