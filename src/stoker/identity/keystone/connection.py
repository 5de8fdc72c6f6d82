"""Sessions for the configured Keystone: of Stoker's own user, and of the administrator of the stack users' domain."""

from __future__ import annotations

from keystoneauth1.identity import v3
from keystoneauth1.session import Session

from stoker.identity.keystone.client import Client
from stoker.model.errors import Invalid
from stoker.settings import Settings


def open_client(settings: Settings) -> Client:
    """Create a client with Stoker's own login. Raises Invalid if the configured cloud does not exist."""
    url = f"{settings.identity_url}/v3"
    if settings.keystone_cloud:
        return Client(_cloud(settings.keystone_cloud, settings.keystone_timeout), url, "keystone_cloud")
    auth = v3.Password(
        auth_url=url,
        username=settings.keystone_user,
        password=settings.keystone_password,
        project_name=settings.keystone_project,
        user_domain_name=settings.keystone_domain,
        project_domain_name=settings.keystone_domain,
    )
    session = Session(auth=auth, timeout=settings.keystone_timeout)
    return Client(session, url, "keystone_user, keystone_password, keystone_project and keystone_domain")


def open_domain(settings: Settings) -> Session:
    """Create a session of the administrator of the domain that contains the stack users."""
    auth = v3.Password(
        auth_url=f"{settings.identity_url}/v3",
        username=settings.stack_domain_admin,
        password=settings.stack_domain_admin_password,
        user_domain_name=settings.stack_user_domain,
        domain_name=settings.stack_user_domain,
    )
    return Session(auth=auth, timeout=settings.keystone_timeout)


def _cloud(name: str, timeout: int) -> Session:
    from openstack.config import OpenStackConfig  # imported late, because the import is slow
    from openstack.exceptions import ConfigException

    try:
        session = OpenStackConfig().get_one(cloud=name).get_session()
    except ConfigException as error:
        raise Invalid(f"the setting keystone_cloud names {name!r}, which is invalid in clouds.yaml: {error}") from None
    session.timeout = timeout
    return session
