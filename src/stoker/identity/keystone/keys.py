"""Who signed a request: a resource, with a key that Stoker derives, or one of Keystone's users."""

from __future__ import annotations

from stoker.identity import ec2, stack_users
from stoker.identity.ec2_keys import Ec2Keys
from stoker.identity.keystone.client import Client
from stoker.identity.keystone.tokens import KeystoneTokens
from stoker.model.errors import Unauthorized
from stoker.model.principal import Principal
from stoker.store.open import Store


class KeystoneKeys:
    def __init__(self, store: Store, own: Ec2Keys, client: Client, tokens: KeystoneTokens) -> None:
        self._store = store
        self._own = own
        self._client = client
        self._tokens = tokens

    def stands_for(self, request: ec2.Request) -> str | None:
        return self._own.stands_for(request)

    def authenticate(self, request: ec2.Request) -> Principal:
        """Keystone is asked about keys that are not ours, not for agents whose resource is gone."""
        access = ec2.access_of(request)
        with self._store.read() as tx:
            ours = stack_users.find(tx, access) is not None
        if ours:
            return self._own.authenticate(request)
        if self._own.stands_for(request) is not None:
            raise Unauthorized("The EC2 access key is not valid any more.")
        return self._tokens.principal(self._client.signed(request))
