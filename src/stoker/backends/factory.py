"""Creates the object store and the messaging service that the settings select: embedded, external or disabled."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from stoker.backends.disabled import DisabledObjects, DisabledQueues
from stoker.backends.logins import CloudLogin, StokerLogin, SwiftLogin
from stoker.backends.reconciler import BackendDriver, Reconciler, RemoteObjects
from stoker.backends.result_polling import OnSignal, ResultPoller
from stoker.backends.service_client import Login, ServiceClient
from stoker.backends.swift import SwiftDriver, SwiftObjects
from stoker.backends.swift_versions import SwiftVersionsDriver
from stoker.backends.zaqar import ZaqarDriver, ZaqarQueues
from stoker.settings import OFF, Settings
from stoker.store import remote_objects
from stoker.store.open import Store
from stoker.store.tx import Tx
from stoker.transports.base import OBJECTS, QUEUES, Objects, Queues
from stoker.work import Work


@dataclass(frozen=True, slots=True)
class Backends:
    """The external or disabled services and their drivers by kind. ``objects`` and ``queues`` are None if embedded."""

    objects: Objects | None
    queues: Queues | None
    drivers: dict[str, BackendDriver]

    @property
    def missing(self) -> list[str]:
        """Names of the services that transports cannot use, as in a transport's ``needs``."""
        found = {OBJECTS: isinstance(self.objects, DisabledObjects), QUEUES: isinstance(self.queues, DisabledQueues)}
        return [name for name, missing in found.items() if missing]


def create_backends(
    settings: Settings,
    work: Work,
    secret: bytes,
    *,
    token_of: Callable[[str], str | None],
    caller: Callable[[str], str] | None = None,
) -> Backends:
    """
    Create the services and drivers.

    ``secret``: the site secret. ``token_of``: returns a token of Stoker's own for a project. ``caller``: returns the
    URL to which Zaqar posts the messages for a resource.
    """
    places, drivers = RemoteObjects(work), dict[str, BackendDriver]()
    objects: Objects | None = None
    queues: Queues | None = None
    if settings.object_store == OFF:
        objects = DisabledObjects()
    elif not settings.embeds_objects:
        # Each driver has its own client: after start-up or a failure, a client permits one request only until an answer
        # arrives.
        url, clients = (
            settings.object_store,
            (ServiceClient(settings.object_store, _login_to_swift(settings)) for _ in range(2)),
        )
        drivers[remote_objects.OBJECT] = swift = SwiftDriver(url, next(clients), secret)
        drivers[remote_objects.VERSIONS] = versions = SwiftVersionsDriver(url, next(clients), secret)
        objects = SwiftObjects(places, swift, versions)
    if settings.messaging == OFF:
        queues = DisabledQueues()
    elif not settings.embeds_queues:
        cloud = settings.messaging_cloud
        client = ServiceClient(settings.messaging, CloudLogin(cloud) if cloud else StokerLogin(token_of))
        drivers[remote_objects.QUEUE] = ZaqarDriver(client, secret, caller if settings.signal_webhooks else None)
        queues = ZaqarQueues(places, settings.messaging)
    return Backends(objects, queues, drivers)


def start_backends(
    found: Backends, store: Store, work: Work, on_signal: OnSignal, on_signed: Callable[[Tx, str], None]
) -> ResultPoller | None:
    """
    Register and start the jobs of the drivers. Returns None if all services are embedded or disabled.

    ``on_signal`` applies results; ``on_signed`` is called when a URL for a resource's agent was signed or refused.
    """
    if not found.drivers:
        return None
    Reconciler(store, work, found.drivers, on_signed).start()
    return ResultPoller(store, work, found.drivers, on_signal)


def _login_to_swift(settings: Settings) -> Login:
    if settings.object_store_cloud:
        return CloudLogin(settings.object_store_cloud)
    return SwiftLogin(settings.object_store_auth_url, settings.object_store_user, settings.object_store_key)
