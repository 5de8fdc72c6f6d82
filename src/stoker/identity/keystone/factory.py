"""Creates the components of Keystone mode, with the logins of Stoker's own user and of the domain's administrator."""

from __future__ import annotations

from dataclasses import dataclass

from keystoneauth1.identity import v3
from keystoneauth1.session import Session

from stoker.identity.ec2_keys import Ec2Keys
from stoker.identity.keystone.accounts import Accounts
from stoker.identity.keystone.client import Client, Refused
from stoker.identity.keystone.keys import KeystoneKeys
from stoker.identity.keystone.tokens import KeystoneTokens
from stoker.model.errors import Invalid, Unavailable
from stoker.settings import Settings
from stoker.store.open import Store


@dataclass(frozen=True, slots=True)
class Keystone:
    """The components of Keystone mode."""

    tokens: KeystoneTokens
    keys: KeystoneKeys
    #: None if no domain administrator is configured: Stoker creates no users.
    accounts: Accounts | None


def open_keystone(settings: Settings, store: Store, own: Ec2Keys) -> Keystone:
    """Create the components. Succeeds while Keystone is unavailable. Raises Invalid if the settings are wrong."""
    client = _open_client(settings)
    try:
        client.log_in()
    except Refused as error:
        raise Invalid(error.message) from None
    except Unavailable:
        pass  # the client has logged the error, and requests fail with it
    tokens = KeystoneTokens(store, client, settings.keystone_cache_seconds)
    accounts = None
    if settings.stack_domain_admin:
        accounts = Accounts(_open_domain(settings), f"{settings.identity_url}/v3")
    return Keystone(tokens, KeystoneKeys(store, own, client, tokens), accounts)


def _open_client(settings: Settings) -> Client:
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


def _open_domain(settings: Settings) -> Session:
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
        return OpenStackConfig().get_one(cloud=name, api_timeout=timeout).get_session()
    except ConfigException as error:
        raise Invalid(f"the setting keystone_cloud names {name!r}, which is invalid in clouds.yaml: {error}") from None
