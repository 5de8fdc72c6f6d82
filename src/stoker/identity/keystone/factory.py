"""Creates the components of Keystone mode."""

from __future__ import annotations

from dataclasses import dataclass

from stoker.identity.ec2_keys import Ec2Keys
from stoker.identity.keystone.accounts import Accounts
from stoker.identity.keystone.client import Refused
from stoker.identity.keystone.connection import open_client, open_domain
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
    client = open_client(settings)
    try:
        client.log_in()
    except Refused as error:
        raise Invalid(error.message) from None
    except Unavailable:
        pass  # the client has logged the error, and requests fail with it
    tokens = KeystoneTokens(store, client, settings.keystone_cache_seconds)
    accounts = None
    if settings.stack_domain_admin:
        accounts = Accounts(open_domain(settings), f"{settings.identity_url}/v3")
    return Keystone(tokens, KeystoneKeys(store, own, client, tokens), accounts)
