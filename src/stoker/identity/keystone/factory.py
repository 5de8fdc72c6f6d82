"""Creates the components of Keystone mode."""

from __future__ import annotations

from dataclasses import dataclass

from stoker.identity.ec2_keys import Ec2Keys
from stoker.identity.keystone.accounts import Accounts
from stoker.identity.keystone.client import Client, Refused
from stoker.identity.keystone.connection import open_client, open_domain
from stoker.identity.keystone.keys import KeystoneKeys
from stoker.identity.keystone.stack_logins import StackLogins
from stoker.identity.keystone.tokens import KeystoneTokens
from stoker.identity.stack_users import StackUsers
from stoker.model.errors import Invalid, Unavailable
from stoker.settings import Settings
from stoker.store.open import Store
from stoker.work import Work


@dataclass(frozen=True, slots=True)
class Keystone:
    """The components of Keystone mode."""

    client: Client
    tokens: KeystoneTokens
    keys: KeystoneKeys
    settings: Settings
    store: Store
    users: StackUsers

    def logins(self, work: Work) -> StackLogins | None:
        """Create the manager of stack users; None if no domain administrator is configured."""
        if not self.settings.stack_domain_admin:
            return None
        accounts = Accounts(open_domain(self.settings), f"{self.settings.identity_url}/v3")
        return StackLogins(self.store, work, accounts, self.users)


def open_keystone(settings: Settings, store: Store, own: Ec2Keys, users: StackUsers) -> Keystone:
    """Create the components. Succeeds while Keystone is unavailable. Raises Invalid if the settings are wrong."""
    client = open_client(settings)
    try:
        client.log_in()
    except Refused as error:
        raise Invalid(error.message) from None
    except Unavailable:
        pass  # the client has logged the error, and requests fail with it
    tokens = KeystoneTokens(store, client, settings.keystone_cache_seconds)
    return Keystone(client, tokens, KeystoneKeys(store, own, client, tokens), settings, store, users)
