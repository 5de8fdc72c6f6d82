"""Creates the object store and the messaging service that the settings select: embedded, external or disabled."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from datetime import datetime
from functools import partial
from typing import Any

from stoker import cloud_entries
from stoker.backends.keystone_users import USER, KeystoneUserController
from stoker.backends.reconciler import Controller, Reconciler
from stoker.backends.remote_object_controller import (
    BackendDriver,
    ExternalObjects,
    RemoteObjectController,
    RemoteObjects,
)
from stoker.backends.result_polling import OnSignal, ResultPoller
from stoker.backends.swift import SwiftDriver, SwiftVersionsDriver
from stoker.backends.zaqar import ZaqarDriver, ZaqarQueues
from stoker.service_client import ServiceClient
from stoker.settings import OFF, Settings
from stoker.store import remote_objects
from stoker.store.open import Store
from stoker.transports.base import OBJECTS, QUEUES, Objects, Queues
from stoker.work import Work


def _ignore(*_: Any, **__: Any) -> None:
    pass


class DisabledObjects:
    """An object store without effect; see ``transports.base.Objects``."""

    open = put = close = await_result = staticmethod(_ignore)

    def url(self, *_: Any) -> str:
        return ""


class DisabledQueues:
    """A messaging service without effect; see ``transports.base.Queues``."""

    url = ""

    open = replace = await_result = close = staticmethod(_ignore)

    def sign(self, *_: Any) -> bool:
        return True

    def signed(self, *_: Any) -> None:
        return None


@dataclass(frozen=True, slots=True)
class ExternalServices:
    """The external or disabled services and their drivers by kind. ``objects`` and ``queues`` are None if embedded."""

    objects: Objects | None
    queues: Queues | None
    drivers: dict[str, BackendDriver]

    @property
    def missing(self) -> list[str]:
        """Names of the services that transports cannot use, as in a transport's ``needs``."""
        disabled = {OBJECTS: isinstance(self.objects, DisabledObjects), QUEUES: isinstance(self.queues, DisabledQueues)}
        return [name for name, is_disabled in disabled.items() if is_disabled]


def create_backends(
    settings: Settings,
    work: Work,
    secret: bytes,
    now: Callable[[], datetime],
    *,
    token_of: Callable[[str], str | None],
    caller: Callable[[str], str] | None = None,
) -> ExternalServices:
    """
    Create the services and drivers.

    ``secret``: the site secret. ``now``: returns the site's time. ``token_of``: returns a token of Stoker's own for a
    project. ``caller``: returns the URL to which Zaqar posts the messages for a resource.
    """
    desired, drivers = RemoteObjects(work), dict[str, BackendDriver]()
    objects: Objects | None = None
    queues: Queues | None = None
    if settings.object_store == OFF:
        objects = DisabledObjects()
    elif not settings.embeds_objects:
        url = settings.object_store
        # Each driver has its own client, because a client tries an unavailable service with one request at a time.
        drivers[remote_objects.OBJECT] = swift = SwiftDriver(url, _swift_client(settings), secret, now)
        drivers[remote_objects.VERSIONS] = versions = SwiftVersionsDriver(url, _swift_client(settings), secret, now)
        objects = ExternalObjects(desired, swift, versions)
    if settings.messaging == OFF:
        queues = DisabledQueues()
    elif not settings.embeds_queues:
        client = _zaqar_client(settings, token_of)
        drivers[remote_objects.QUEUE] = ZaqarDriver(client, secret, caller if settings.signal_webhooks else None, now)
        queues = ZaqarQueues(desired, settings.messaging)
    return ExternalServices(objects, queues, drivers)


def start_backends(
    external: ExternalServices,
    users: KeystoneUserController | None,
    store: Store,
    work: Work,
    *,
    on_signal: OnSignal,
) -> ResultPoller | None:
    """
    Register and start the jobs. Returns None if no external service can have results; ``on_signal`` applies them.
    """
    controllers: dict[str, Controller] = {
        kind: RemoteObjectController(store, work, kind, driver) for kind, driver in external.drivers.items()
    }
    if users is not None:
        controllers[USER] = users
    if controllers:
        Reconciler(store, work, controllers).start()
    return ResultPoller(store, work, external.drivers, on_signal) if external.drivers else None


def _swift_client(settings: Settings) -> ServiceClient:
    # Imported late, because most sites need no login at another service.
    from stoker.backends.logins import open_swift_session

    session = partial(open_swift_session, settings.object_store_cloud, "object_store_cloud")
    return ServiceClient(settings.object_store, session)


def _zaqar_client(settings: Settings, token_of: Callable[[str], str | None]) -> ServiceClient:
    from stoker.backends.logins import log_in_projects, open_session  # as above

    if settings.messaging_cloud:
        session = partial(cloud_entries.open_session, settings.messaging_cloud, "messaging_cloud")
        return ServiceClient(settings.messaging, session)
    return ServiceClient(settings.messaging, open_session, log_in_projects(token_of))
