"""Services that resource types use, which ``serve`` provides."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any, Protocol

from stoker.identity.project_lookup import ProjectLookup
from stoker.identity.signal_tokens import SignalTokens
from stoker.model.stack import Stack
from stoker.policy.authorizer import DeploymentAuthorizer
from stoker.servers.compute import Compute
from stoker.servers.keys import Keys
from stoker.store.tx import Tx
from stoker.transports import Transports
from stoker.transports.base import Platform
from stoker.work import Work


class StackUsers(Protocol):
    """Keystone users for agents. Not needed if users are Stoker's own."""

    def ensure(self, tx: Tx, resource_id: str, stack_id: str, name: str) -> None:
        """Request an enabled user. Stoker calls the resource's ``check`` once the user exists."""

    def find(self, tx: Tx, resource_id: str) -> Mapping[str, str] | None:
        """Return ``user_id``, ``project_id`` and ``domain_id`` if the user exists and is enabled; otherwise None."""

    def disable(self, tx: Tx, resource_id: str) -> None:
        """Request that the user is disabled."""

    def drop(self, tx: Tx, resource_id: str) -> None:
        """Request that the user is deleted."""
        ...

    def drop_stack(self, tx: Tx, stack: Stack) -> None:
        """Request that everything that Keystone has for a tree of stacks is deleted."""


class Delegations(Protocol):
    """The permissions by which Stoker acts for the owners of stacks at a cloud. A delegation is opaque to callers."""

    def delegate(self, token: str, project_id: str, root_id: str) -> Any:
        """
        Create a delegation for a stack with the token of its owner; None if the stack has one.

        Must not be called in a transaction. ``confirm`` makes the result active. Raises Forbidden, Unauthorized and
        Unavailable.
        """

    def confirm(self, tx: Tx, new: Any) -> None:
        """Make a new delegation active, in the transaction that needs it. Raises Unavailable if it was revoked."""

    def discard(self, new: Any) -> None:
        """Revoke a delegation that was not confirmed."""

    def is_needed(self, tx: Tx, root_id: str) -> bool:
        """Return whether a tree of stacks has objects at the cloud."""
        ...

    def drop_stack(self, tx: Tx, stack: Stack) -> None:
        """Request that the delegation of a deleted root stack is revoked."""


@dataclass(frozen=True, slots=True)
class OwnedObject:
    """An object of a cloud that belongs to a resource."""

    external_id: str
    resource_id: str
    project_id: str


def _no_owners(_tx: Tx, _ids: Collection[str]) -> Iterable[OwnedObject]:
    return ()


@dataclass(frozen=True, slots=True)
class Answer:
    """A response of a Heat API: the HTTP status and the decoded body."""

    status: int
    #: None if the response has no JSON body.
    body: Any


class RemoteHeats(Protocol):
    """Clients for the Heat APIs of this site and of other regions."""

    def problem(self, region: str | None) -> str | None:
        """Return why the region cannot be reached; None if it can. ``region`` None: this site."""

    def remedy(self) -> str:
        """Return which regions can be reached."""

    def is_local(self, region: str | None) -> bool:
        """Return whether the region is this site's."""

    def ask(self, region: str | None, project_id: str, root_id: str, verb: str, path: str, body: Any = None) -> Answer:
        """
        Send a request to ``path`` below the project's root URL, for the owner of the stack ``root_id``.

        Must not be called in a transaction.

        Raises ServiceUnavailable and ServiceRejected.
        """
        ...


@dataclass(frozen=True, slots=True)
class ResourceEnv:
    """The services that resource types use, for all calls of one process."""

    transports: Transports
    work: Work
    #: None if no provider is enabled.
    compute: Compute | None
    signal_tokens: SignalTokens
    platform: Platform
    remote_heats: RemoteHeats
    projects: ProjectLookup
    #: Agent keys, with which published documents are signed.
    keys: Keys
    #: Every run of a deployment passes the authorizer.
    authorizer: DeploymentAuthorizer
    #: What the provider offers to its types, by interface; empty without a provider.
    provided: Mapping[type[Any], Any] = field(default_factory=dict)
    #: Returns the objects with these external ids that belong to resources already.
    find_owned: Callable[[Tx, Collection[str]], Iterable[OwnedObject]] = _no_owners
    #: None if users are Stoker's own.
    stack_users: StackUsers | None = None
    #: None unless Stoker acts for the owners of stacks.
    delegations: Delegations | None = None

    @property
    def has_provider(self) -> bool:
        """Whether the site has a cloud or local servers."""
        return self.compute is not None or bool(self.provided)
