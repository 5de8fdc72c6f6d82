"""
Providers: distributions that add the resource types of a cloud, and do the work of these types.

A package names a function as an entry point in the group ``stoker.providers``. The function gets the site while the
site is created, registers jobs and returns what it offers, or None if the settings do not select the provider::

    def create(site):
        greeter = Greeter(site.store)
        site.work.register("example.greet", greeter.greet)
        return Provider(offered={Greeter: greeter})

A function of the package's resource types finds the object as ``context.env.provider.offered[Greeter]``. A job that has
changed the state of a resource's object calls ``tx.wake`` for the resource, whose ``check`` is then called.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator, Mapping
from dataclasses import dataclass, field
from importlib.metadata import entry_points
from typing import TYPE_CHECKING, Any, Protocol

from stoker.backends.garbage_collector import CollectedObject
from stoker.model.errors import Invalid
from stoker.model.stack import Stack
from stoker.settings import Settings
from stoker.store.open import Store
from stoker.store.tx import Tx
from stoker.work import Work

if TYPE_CHECKING:
    from keystoneauth1.plugin import BaseAuthPlugin


@dataclass(frozen=True, slots=True, kw_only=True)
class ProviderSite:
    """The site that a provider is created for."""

    settings: Settings
    store: Store
    work: Work
    #: The site secret, from which the provider may derive keys.
    secret: bytes


class Constraints(Protocol):
    """Checks of values that name objects of a cloud, for one request. Must not be used in a transaction."""

    def find_problem(self, constraint: str, value: str) -> str | None:
        """Return why the value violates a custom constraint such as ``glance.image``; None if it does not."""
        ...

    def warnings(self) -> list[str]:
        """Return warnings about values that could not be checked."""
        ...


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


def _nothing() -> None:
    return None


def _imply_nothing(_resources: Mapping[str, Any]) -> Mapping[str, Collection[str]]:
    return {}


def _refuse_nothing(*_: Any) -> None:
    return None


def _no_garbage(_dry_run: bool) -> Iterator[CollectedObject]:
    return iter(())


@dataclass(frozen=True, slots=True, kw_only=True)
class Provider:
    """What a provider offers to the site. All members have defaults that do nothing."""

    #: Objects for the provider's own resource types, by their interface.
    offered: Mapping[type[Any], Any] = field(default_factory=dict)
    #: None unless Stoker acts for the owners of stacks.
    delegations: Delegations | None = None
    #: Returns the login for requests that ``delegations`` permit for a root stack.
    owner_login: Callable[[str], BaseAuthPlugin] | None = None
    #: (token, project id): returns the checks of one request, which may look up values as the token's user.
    open_constraints: Callable[[str, str], Constraints] | None = None
    #: (types by name, resources of abandon data, checks): raises Invalid with all objects of an adoption that the cloud
    #: lacks. Must not be called in a transaction.
    refuse_missing: Callable[[Mapping[str, Any], Mapping[str, Any], Constraints], None] = _refuse_nothing
    #: (transaction, types by name, resources of abandon data, project id): raises Conflict with all objects of an
    #: adoption that belong to a resource already.
    refuse_owned: Callable[[Tx, Mapping[str, Any], Mapping[str, Any], str], None] = _refuse_nothing
    #: (checked resources of a template by name): returns the names of others that each depends on although no function
    #: states it, as in Heat: a port needs a subnet.
    imply_dependencies: Callable[[Mapping[str, Any]], Mapping[str, Collection[str]]] = _imply_nothing
    #: (dry run): deletes what belongs to no resource any more, and yields it; see ``backends.garbage_collector``.
    collect_garbage: Callable[[bool], Iterator[CollectedObject]] = _no_garbage
    #: Starts the work in the background, once the site is complete.
    start: Callable[[], None] = _nothing


def load(site: ProviderSite) -> Provider:
    """
    Return the provider that the settings select, or one that offers nothing.

    Raises Invalid if several providers are selected, or if the setting ``cloud`` is set and no provider is installed.
    """
    points = entry_points(group="stoker.providers")
    providers = [provider for point in points if (provider := point.load()(site)) is not None]
    if len(providers) > 1:
        raise Invalid(f"one provider can serve a site, not all of {', '.join(point.name for point in points)}")
    if not providers and site.settings.cloud:
        raise Invalid("cloud is set, but no provider is installed: install plugins/openstack from Stoker's source")
    return providers[0] if providers else Provider()
