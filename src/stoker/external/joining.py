"""From what is set to what transports use: Stoker's own, a service elsewhere, or nothing."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from stoker.external.logins import Cloud, Ours, SwiftsOwn
from stoker.external.looking import Looking, OnSignal
from stoker.external.nothing import NoObjects, NoQueues
from stoker.external.peer import Login, Peer
from stoker.external.swift import SwiftHand, SwiftObjects
from stoker.external.swift_versions import VersionsHand
from stoker.external.work import Hand, Lodgings, Reaching
from stoker.external.zaqar import ZaqarHand, ZaqarQueues
from stoker.settings import OFF, Settings
from stoker.store import lodgings
from stoker.store.open import Store
from stoker.store.tx import Tx
from stoker.transports.base import OBJECTS, QUEUES, Objects, Queues
from stoker.work import Work


@dataclass(frozen=True, slots=True)
class Elsewhere:
    """``objects`` and ``queues`` are None where the embedded ones serve."""

    objects: Objects | None
    queues: Queues | None
    hands: dict[str, Hand]

    @property
    def missing(self) -> list[str]:
        """What transports cannot have here."""
        found = {OBJECTS: isinstance(self.objects, NoObjects), QUEUES: isinstance(self.queues, NoQueues)}
        return [name for name, missing in found.items() if missing]


def elsewhere(
    settings: Settings,
    work: Work,
    secret: bytes,
    *,
    token_of: Callable[[str], str | None],
    caller: Callable[[str], str] | None = None,
) -> Elsewhere:
    """``token_of``: a token of Stoker's own for a project; ``caller``: the URL to call for a resource's messages."""
    places, hands = Lodgings(work), dict[str, Hand]()
    objects: Objects | None = None
    queues: Queues | None = None
    if settings.object_store == OFF:
        objects = NoObjects()
    elif not settings.embeds_objects:
        # A peer each: of one that was not asked before, one request alone finds out whether it is there.
        url, peers = settings.object_store, (Peer(settings.object_store, _login_to_swift(settings)) for _ in range(2))
        hands[lodgings.OBJECT] = swift = SwiftHand(url, next(peers), secret)
        hands[lodgings.VERSIONS] = versions = VersionsHand(url, next(peers), secret)
        objects = SwiftObjects(places, swift, versions)
    if settings.messaging == OFF:
        queues = NoQueues()
    elif not settings.embeds_queues:
        cloud = settings.messaging_cloud
        peer = Peer(settings.messaging, Cloud(cloud) if cloud else Ours(token_of))
        hands[lodgings.QUEUE] = ZaqarHand(peer, secret, caller if settings.signal_webhooks else None)
        queues = ZaqarQueues(places, settings.messaging)
    return Elsewhere(objects, queues, hands)


def begin(
    found: Elsewhere, store: Store, work: Work, on_signal: OnSignal, on_signed: Callable[[Tx, str], None]
) -> Looking | None:
    """Register the jobs; None where nothing is elsewhere."""
    if not found.hands:
        return None
    Reaching(store, work, found.hands, on_signed).begin()
    return Looking(store, work, found.hands, on_signal)


def _login_to_swift(settings: Settings) -> Login:
    if settings.object_store_cloud:
        return Cloud(settings.object_store_cloud)
    return SwiftsOwn(settings.object_store_auth_url, settings.object_store_user, settings.object_store_key)
