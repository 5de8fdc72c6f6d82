"""The embedded object store and messaging service, as transports use them."""

from __future__ import annotations

import hashlib
import hmac
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any

from stoker.messaging import Messaging, SignedUrls, signed_urls
from stoker.messaging.metadata import KEEP_NEWEST, path_of
from stoker.objects import Objects, tempurl
from stoker.store import queues, subscriptions
from stoker.store.tx import Tx
from stoker.transports.base import Party, Place, Signed

#: Seconds that a document stays in a queue; long before its end it is posted anew.
DOCUMENT_TTL = 3600


class SiteKey:
    """The key that Stoker's own signed URLs are made with, besides those that accounts may have: users never see it."""

    def __init__(self, secret: bytes) -> None:
        self._secret = hmac.digest(secret, b"stoker signed urls of objects", hashlib.sha256)

    def of(self, account: str) -> str:
        return hmac.new(self._secret, account.encode("utf-8", "replace"), hashlib.sha256).hexdigest()


@dataclass(frozen=True, slots=True)
class EmbeddedObjects:
    store: Objects
    key: SiteKey
    public_url: str

    def open(self, tx: Tx, party: Party, place: Place, owner: str) -> None:
        self.store.create_container(tx, party.project_id, place.container, owner=owner)
        self.store.put(tx, party.project_id, place.container, place.name, b"")

    def put(self, tx: Tx, party: Party, place: Place, data: bytes) -> None:
        self.store.put(tx, party.project_id, place.container, place.name, data, content_type="application/json")

    def close(self, tx: Tx, party: Party, place: Place) -> None:
        self.store.discard(tx, party.project_id, place.container, place.name)

    def expect(self, tx: Tx, party: Party, place: Place, until: datetime | None = None) -> None:
        """Whoever puts something there is heard at once."""

    def url(self, party: Party, place: Place, verb: str) -> str:
        key, root = self.key.of(party.project_id), f"{self.public_url}/object-store"
        return tempurl.url(root, key, verb, party.project_id, place.container, place.name, tempurl.FOREVER)


@dataclass(frozen=True, slots=True)
class EmbeddedQueues:
    messaging: Messaging
    agents_urls: SignedUrls
    public_url: str

    def open(self, tx: Tx, party: Party, *, keep_newest: bool) -> None:
        metadata = {KEEP_NEWEST: True} if keep_newest else {}
        self.messaging.create_queue(tx, party.project_id, party.resource_id, metadata, owner=party.resource_id)

    def replace(self, tx: Tx, party: Party, body: Any) -> None:
        self.messaging.purge(tx, party.project_id, party.resource_id)
        self.messaging.post(tx, party.project_id, party.resource_id, [body], ttl=DOCUMENT_TTL, owner=party.resource_id)

    def expect(self, tx: Tx, party: Party, until: datetime | None = None) -> None:
        """Whoever posts something there is heard at once."""

    def sign(self, tx: Tx, party: Party, method: str) -> bool:
        return True

    def signed(self, tx: Tx, party: Party, method: str) -> Signed:
        paths = [f"/v2/queues/{party.resource_id}/messages"]
        until = signed_urls.agents_until(party.resource_id, tx.now)
        made = self.agents_urls.sign(party.project_id, paths, [method], until)
        return Signed(
            url=f"{self.public_url}/messaging",
            project_id=made.project,
            paths=",".join(made.paths),
            methods=",".join(made.methods),
            expires=made.expires,
            signature=made.signature,
        )

    def close(self, tx: Tx, party: Party) -> None:
        self.messaging.delete_queue(tx, party.project_id, party.resource_id)


@dataclass(frozen=True, slots=True)
class EmbeddedMessaging:
    """Queues that templates ask for."""

    messaging: Messaging
    signed_urls: SignedUrls
    public_url: str

    @property
    def url(self) -> str:
        return f"{self.public_url}/messaging"

    def create(self, tx: Tx, project_id: str, queue: str, metadata: Mapping[str, Any]) -> None:
        self.messaging.create_queue(tx, project_id, queue, metadata)

    def describe(self, tx: Tx, project_id: str, queue: str, metadata: Mapping[str, Any]) -> None:
        changes = [{"op": "add", "path": path_of(name), "value": value} for name, value in metadata.items()]
        self.messaging.create_queue(tx, project_id, queue, metadata)
        self.messaging.patch_queue(tx, project_id, queue, changes)

    def delete(self, tx: Tx, project_id: str, queue: str) -> None:
        self.messaging.delete_queue(tx, project_id, queue)

    def post(self, tx: Tx, project_id: str, queue: str, bodies: Sequence[Any], ttl: int) -> None:
        self.messaging.post(tx, project_id, queue, bodies, ttl=ttl)

    def sign(
        self, project_id: str, queue: str, paths: Sequence[str], methods: Sequence[str], expires: datetime
    ) -> Mapping[str, Any]:
        below = [f"/v2/queues/{queue}/{each}" for each in paths]
        return self.signed_urls.sign(project_id, below, methods, expires).to_json()

    def subscribe(self, tx: Tx, project_id: str, queue: str, said: Mapping[str, Any]) -> str:
        held = self.messaging.hold_or_create(tx, project_id, queue)
        return self.messaging.subscribing.subscribe(tx, held, dict(said))

    def resubscribe(self, tx: Tx, project_id: str, queue: str, id: str, said: Mapping[str, Any]) -> None:
        self.messaging.subscribing.change(tx, self.messaging.hold_or_create(tx, project_id, queue), id, dict(said))

    def unsubscribe(self, tx: Tx, project_id: str, queue: str, id: str) -> None:
        known = queues.find(tx, project_id, queue)
        if known is not None:
            subscriptions.delete(tx, known.id, id)
