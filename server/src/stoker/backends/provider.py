"""
Providers: distributions that add the resource types of a cloud, and do the work of these types.

A package names a function as an entry point in the group ``stoker.providers``. The function gets the site while the
site is created, registers jobs and returns what it offers, or None if the settings do not select the provider::

    def create(site):
        greeter = Greeter(site.store)
        site.work.register("example.greet", greeter.greet)
        return Provider(offered={Greeter: greeter})

A function of the package's resource types finds the object as ``context.env.provided[Greeter]``. A job that has changed
the state of a resource's object calls ``tx.wake`` for the resource, whose ``check`` is then called.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from importlib.metadata import entry_points
from typing import Any

from stoker.backends.garbage_collector import CollectedObject
from stoker.backends.service_client import Login
from stoker.model.errors import Invalid
from stoker.resources.constraints import Constraints
from stoker.resources.env import Delegations, OwnedObject
from stoker.settings import Settings
from stoker.store.open import Store
from stoker.store.tx import Tx
from stoker.work import Work


@dataclass(frozen=True, slots=True, kw_only=True)
class ProviderSite:
    """The site that a provider is created for."""

    settings: Settings
    store: Store
    work: Work
    #: The site secret, from which the provider may derive keys.
    secret: bytes


def _nothing() -> None:
    return None


def _no_owners(_tx: Tx, _ids: Collection[str]) -> Iterable[OwnedObject]:
    return ()


def _no_garbage(_dry_run: bool) -> Iterator[CollectedObject]:
    return iter(())


@dataclass(frozen=True, slots=True, kw_only=True)
class Provider:
    """What a provider offers to the site. All members have defaults that do nothing."""

    #: Objects for the provider's own resource types, by their interface.
    offered: Mapping[type[Any], Any] = field(default_factory=dict)
    #: None unless Stoker acts for the owners of stacks.
    delegations: Delegations | None = None
    #: The login for requests that ``delegations`` permit. In place of a project, callers name a root stack.
    owner_login: Login | None = None
    #: (token, project id): returns the checks of one request, which may look up values as the token's user.
    open_constraints: Callable[[str, str], Constraints] | None = None
    #: Returns the objects with these external ids that belong to resources already.
    find_owned: Callable[[Tx, Collection[str]], Iterable[OwnedObject]] = _no_owners
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
