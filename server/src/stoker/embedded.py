"""The embedded object store and messaging service, as implementations of the protocols in ``transports.base``."""

from __future__ import annotations

import hashlib
import hmac
from dataclasses import dataclass
from datetime import datetime
from typing import Any

from stoker.messaging import Messaging, SignedUrls, signed_urls
from stoker.messaging.limits import KEEP_NEWEST
from stoker.messaging.signed_urls import SignedUrl
from stoker.objects import operations, tempurl
from stoker.store.tx import Tx
from stoker.transports.base import ObjectRef, TransportTarget

#: Lifetime of a document in a queue in seconds. Stoker posts the document again long before it expires.
DOCUMENT_TTL = 3600


class SiteKey:
    """
    The keys with which Stoker signs URLs of objects, in addition to the accounts' own keys. Users cannot read them.
    """

    def __init__(self, secret: bytes) -> None:
        self._secret = hmac.digest(secret, b"stoker signed urls of objects", hashlib.sha256)

    def of(self, account: str) -> str:
        """Return the key for an account."""
        return hmac.new(self._secret, account.encode("utf-8", "replace"), hashlib.sha256).hexdigest()


@dataclass(frozen=True, slots=True)
class EmbeddedObjects:
    """The embedded object store; see ``transports.base.Objects``."""

    key: SiteKey
    public_url: str

    def open(self, tx: Tx, target: TransportTarget, ref: ObjectRef, owner: str) -> None:
        operations.create_container(tx, target.project_id, ref.container, owner=owner)
        operations.put(tx, target.project_id, ref.container, ref.name, b"", as_owner=True)

    def put(self, tx: Tx, target: TransportTarget, ref: ObjectRef, data: bytes) -> None:
        place, kind = (target.project_id, ref.container, ref.name), "application/json"
        operations.put(tx, *place, data, content_type=kind, secret=True, as_owner=True)

    def close(self, tx: Tx, target: TransportTarget, ref: ObjectRef) -> None:
        operations.discard(tx, target.project_id, ref.container, ref.name)

    def await_result(self, tx: Tx, target: TransportTarget, ref: ObjectRef, until: datetime | None = None) -> None:
        """No effect, because every write to an object is reported at once."""

    def url(self, target: TransportTarget, ref: ObjectRef, verb: str) -> str:
        key, root = self.key.of(target.project_id), f"{self.public_url}/object-store"
        return tempurl.url(root, key, verb, target.project_id, ref.container, ref.name, tempurl.FOREVER)


@dataclass(frozen=True, slots=True)
class EmbeddedQueues:
    """The embedded messaging service for transports; see ``transports.base.Queues``."""

    messaging: Messaging
    agents_urls: SignedUrls
    url: str

    def open(self, tx: Tx, target: TransportTarget, *, keep_newest: bool) -> None:
        metadata = {KEEP_NEWEST: True} if keep_newest else {}
        self.messaging.create_queue(tx, target.project_id, target.remote_name, metadata, owner=target.resource_id)

    def replace(self, tx: Tx, target: TransportTarget, body: Any) -> None:
        self.messaging.purge(tx, target.project_id, target.remote_name, as_owner=True)
        self.messaging.post(
            tx, target.project_id, target.remote_name, [body], ttl=DOCUMENT_TTL, owner=target.resource_id
        )

    def await_result(self, tx: Tx, target: TransportTarget, until: datetime | None = None) -> None:
        """No effect, because every message is reported at once."""

    def sign(self, tx: Tx, target: TransportTarget, method: str) -> bool:
        return True

    def signed(self, tx: Tx, target: TransportTarget, method: str) -> SignedUrl:
        paths = [f"/v2/queues/{target.remote_name}/messages"]
        until = signed_urls.agents_until(target.resource_id, tx.now)
        return self.agents_urls.sign(target.project_id, paths, [method], until)

    def close(self, tx: Tx, target: TransportTarget) -> None:
        self.messaging.delete_queue(tx, target.project_id, target.remote_name, as_owner=True)
