"""
What authenticates requests, and the logins of people who use the console: with Stoker's own users or with Keystone.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, TypeAlias

from stoker.identity.directory import DOMAIN_ID, UNSCOPED, Directory, Named, Scope
from stoker.model.errors import Unauthorized
from stoker.model.principal import Project
from stoker.store import identity
from stoker.store.open import Store

if TYPE_CHECKING:
    from stoker.identity.keystone.authentication import KeystoneLogins, KeystoneTokens  # only in Keystone mode
    from stoker.identity.tokens import Tokens

#: Validates tokens: ``get_cached`` without I/O, ``validate`` with.
TokenCheck: TypeAlias = "Tokens | KeystoneTokens"
#: Issues and revokes people's tokens. All methods may block, and raise Unauthorized if a password or token is not
#: valid, and Unavailable if Keystone does not answer.
Logins: TypeAlias = "OwnLogins | KeystoneLogins"


class OwnLogins:
    """Logins at the embedded identity service. ``KeystoneLogins`` has the same methods."""

    def __init__(self, store: Store, directory: Directory) -> None:
        self._store, self._directory = store, directory

    def log_in(self, name: str, password: str, domain: str, address: str) -> str:
        """
        Return a token without a project, which can be exchanged for tokens of the user's projects.

        ``address`` is the client's. Raises TooManyRequests after too many failures. The only domain is the default one.
        """
        if domain.lower() != DOMAIN_ID:
            raise Unauthorized("The user name or the password is wrong.")
        return self._directory.log_in(Named(name=name), password, UNSCOPED, address).token

    def enter(self, token: str, project_id: str) -> str:
        """Return a token for a project, which expires with ``token``, and is revoked with it."""
        return self._directory.rescope(token, Scope(Named(id=project_id))).token

    def leave(self, token: str) -> str:
        """Return a token without a project for the user of a project's token: it expires and is revoked with it."""
        return self._directory.rescope(token, UNSCOPED).token

    def list_projects(self, token: str) -> Sequence[Project]:
        """Return the projects in which the token's user has a role."""
        user_id = self._directory.tokens.validate(token).user_id
        with self._store.read() as tx:
            return identity.list_projects(tx, user_id=user_id, enabled=True)

    def revoke(self, token: str) -> None:
        """Revoke a token."""
        self._directory.tokens.revoke(token)
