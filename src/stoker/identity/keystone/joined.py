"""Keystone's parts, put together."""

from __future__ import annotations

from dataclasses import dataclass

from stoker.identity.ec2_keys import Ec2Keys
from stoker.identity.keystone.client import Client, Refused
from stoker.identity.keystone.keys import KeystoneKeys
from stoker.identity.keystone.opening import open_client
from stoker.identity.keystone.tokens import KeystoneTokens
from stoker.model.errors import Invalid, Unavailable
from stoker.settings import Settings
from stoker.store.open import Store


@dataclass(frozen=True, slots=True)
class Keystone:
    client: Client
    tokens: KeystoneTokens
    keys: KeystoneKeys


def open_keystone(settings: Settings, store: Store, own: Ec2Keys) -> Keystone:
    """Stoker starts also while Keystone is down. Raises Invalid for what is wrong with the settings."""
    client = open_client(settings)
    try:
        client.log_in()
    except Refused as error:
        raise Invalid(error.message) from None
    except Unavailable:
        pass  # it is in the log, and whoever comes is told
    tokens = KeystoneTokens(store, client, settings.keystone_cache_seconds)
    return Keystone(client, tokens, KeystoneKeys(store, own, client, tokens))
