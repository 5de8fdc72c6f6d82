"""Keystone's parts, put together."""

from __future__ import annotations

from dataclasses import dataclass

from stoker.identity.ec2_keys import Ec2Keys
from stoker.identity.keystone.accounts import Accounts
from stoker.identity.keystone.client import Client, Refused
from stoker.identity.keystone.keys import KeystoneKeys
from stoker.identity.keystone.opening import open_client, open_domain
from stoker.identity.keystone.stack_logins import StackLogins
from stoker.identity.keystone.tokens import KeystoneTokens
from stoker.identity.stack_users import StackUsers
from stoker.model.errors import Invalid, Unavailable
from stoker.settings import Settings
from stoker.store.open import Store
from stoker.work import Work


@dataclass(frozen=True, slots=True)
class Keystone:
    client: Client
    tokens: KeystoneTokens
    keys: KeystoneKeys
    settings: Settings
    store: Store
    users: StackUsers

    def logins(self, work: Work) -> StackLogins | None:
        """None without an administrator of the domain for them."""
        if not self.settings.stack_domain_admin:
            return None
        accounts = Accounts(open_domain(self.settings), f"{self.settings.identity_url}/v3")
        return StackLogins(self.store, work, accounts, self.users)


def open_keystone(settings: Settings, store: Store, own: Ec2Keys, users: StackUsers) -> Keystone:
    """Stoker starts also while Keystone is down. Raises Invalid for what is wrong with the settings."""
    client = open_client(settings)
    try:
        client.log_in()
    except Refused as error:
        raise Invalid(error.message) from None
    except Unavailable:
        pass  # it is in the log, and whoever comes is told
    tokens = KeystoneTokens(store, client, settings.keystone_cache_seconds)
    return Keystone(client, tokens, KeystoneKeys(store, own, client, tokens), settings, store, users)
