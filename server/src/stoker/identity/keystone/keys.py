"""Authenticates signed requests: by a resource's key, which Stoker derives, or by a Keystone user's key."""

from __future__ import annotations

from dataclasses import replace

from stoker.identity import ec2, stack_users
from stoker.identity.ec2_keys import Ec2Keys
from stoker.identity.keystone.client import Client
from stoker.identity.keystone.tokens import KeystoneTokens
from stoker.model.errors import Unauthorized
from stoker.model.principal import Principal
from stoker.store.open import Store


class KeystoneKeys:
    """Authenticates requests signed with an EC2 key in Keystone mode."""

    def __init__(self, store: Store, own: Ec2Keys, client: Client, tokens: KeystoneTokens) -> None:
        self._store = store
        self._own = own
        self._client = client
        self._tokens = tokens

    def authenticate(self, request: ec2.Request) -> Principal:
        """Ask Keystone only about keys that Stoker did not derive, and not about keys of deleted resources."""
        access = ec2.access_of(request)
        with self._store.read() as tx:
            ours = stack_users.find(tx, access) is not None
        if ours:
            return self._own.authenticate(request)
        if self._own.stands_for(request) is not None:
            raise Unauthorized("The EC2 access key is not valid any more.")
        ec2.check_time(request, self._store.clock.now())  # Keystone accepts a signature without a time for ever
        body, token = self._client.validate_signature(request)
        return replace(self._tokens.principal(body), token=token)
