"""Creates the components of Keystone mode, with the logins of Stoker's own user and of the domain's administrator."""

from __future__ import annotations

from dataclasses import dataclass

from stoker import cloud_entries
from stoker.identity.keystone.accounts import Accounts
from stoker.identity.keystone.authentication import KeystoneKeys, KeystoneLogins, KeystoneTokens
from stoker.identity.keystone.client import Client, Refused
from stoker.identity.stack_users import Ec2Keys
from stoker.model.errors import Invalid, Unavailable
from stoker.settings import Settings
from stoker.store.open import Store


@dataclass(frozen=True, slots=True)
class Keystone:
    """The components of Keystone mode."""

    tokens: KeystoneTokens
    keys: KeystoneKeys
    logins: KeystoneLogins
    #: None if no domain administrator is configured: Stoker creates no users.
    accounts: Accounts | None


def open_keystone(settings: Settings, store: Store, own: Ec2Keys) -> Keystone:
    """Create the components. Succeeds while Keystone is unavailable. Raises Invalid if the settings are wrong."""
    session = cloud_entries.open_session(settings.keystone_cloud, "keystone_cloud")
    url = f"{settings.identity_url}/v3"
    client = Client(session, url, "keystone_cloud")
    try:
        client.log_in()
    except Refused as error:
        raise Invalid(error.message) from None
    except Unavailable:
        pass  # the client has logged the error, and requests fail with it
    tokens = KeystoneTokens(store, client, settings.keystone_cache_seconds)
    accounts = None
    if settings.stack_domain_cloud:
        domain = cloud_entries.open_session(settings.stack_domain_cloud, "stack_domain_cloud")
        accounts = Accounts(domain, url)
    return Keystone(tokens, KeystoneKeys(store, own, client, tokens), KeystoneLogins(session, url), accounts)
