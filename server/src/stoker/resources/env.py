"""Services that resource types use, which ``serve`` provides."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any

from stoker.backends.keystone_users import KeystoneUsers
from stoker.backends.provider import Delegations, OwnedObject, no_owners
from stoker.backends.remote_heat import RemoteHeatClient
from stoker.deployments.owners import DeploymentEnv
from stoker.servers.compute import Compute
from stoker.servers.keys import Keys
from stoker.store.tx import Tx


@dataclass(frozen=True, slots=True, kw_only=True)
class ResourceEnv(DeploymentEnv):
    """The services that resource types use, for all calls of one process."""

    #: None if no provider is enabled.
    compute: Compute | None
    remote_heats: RemoteHeatClient
    #: Returns the id of the project that a policy names by its id or name. Raises Invalid.
    find_project: Callable[[Tx, str], str]
    #: Agent keys, with which published documents are signed.
    keys: Keys
    #: What the provider offers to its types, by interface; empty without a provider.
    provided: Mapping[type[Any], Any] = field(default_factory=dict)
    #: Returns the objects with these external ids that belong to resources already.
    find_owned: Callable[[Tx, Collection[str]], Iterable[OwnedObject]] = no_owners
    #: None if users are Stoker's own, or Stoker cannot create users at Keystone.
    stack_users: KeystoneUsers | None = None
    #: Whether agents may have to wait for a user at Keystone, or for a URL that an external Zaqar signs.
    agents_wait: bool = False
    #: None unless Stoker acts for the owners of stacks.
    delegations: Delegations | None = None

    @property
    def has_provider(self) -> bool:
        """Whether the site has a cloud or local servers."""
        return self.compute is not None or bool(self.provided)
