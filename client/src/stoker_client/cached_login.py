"""A keystoneauth plugin that stores tokens in a ``LoginCache`` for later commands."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from typing import Any

from keystoneauth1.access import AccessInfo
from keystoneauth1.identity.base import BaseIdentityPlugin
from keystoneauth1.plugin import BaseAuthPlugin
from keystoneauth1.session import Session

from stoker_client.login_cache import LoginCache


class CachedLogin(BaseIdentityPlugin):  # type: ignore[misc]  # keystoneauth is untyped here
    """
    Uses the token of an earlier command while it is valid, else a token from ``plugin``.

    ``plugin`` is a function that returns a keystoneauth plugin; it is called only when a token is needed.
    ``connection`` is stored with the token, so that later commands can connect without openstacksdk.
    """

    def __init__(
        self, cache: LoginCache, auth_url: str, connection: Mapping[str, Any], plugin: Callable[[], BaseAuthPlugin]
    ) -> None:
        super().__init__(auth_url=auth_url)
        self._cache = cache
        self._connection = connection
        self._plugin = plugin

    def restore(self, state: str) -> None:
        """Use a token that ``get_auth_state`` returned."""
        self.set_auth_state(state)

    def get_auth_ref(self, session: Session, **_: Any) -> AccessInfo:
        """Log in and store the token for later commands."""
        access = self._plugin().get_access(session)
        state = json.dumps({"auth_token": access.auth_token, "body": access._data})  # the format of get_auth_state
        self._cache.write({**self._connection, "state": state})
        return access

    def invalidate(self) -> bool:
        """Discard a rejected token, here and for later commands."""
        self._cache.drop()
        return bool(super().invalidate())

    def get_cache_id_elements(self) -> dict[str, str | None]:
        """Return nothing, because keystoneauth must not cache this plugin."""
        return {}
