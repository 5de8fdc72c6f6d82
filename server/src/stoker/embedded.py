"""The embedded object store and messaging service, as implementations of the protocols in ``transports.base``."""

from __future__ import annotations

import hashlib
import hmac
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import datetime
from typing import Any

from stoker.messaging import Messaging, SignedUrls, signed_urls
from stoker.messaging.limits import KEEP_NEWEST
from stoker.model.embedded import Queue, belongs_to_agents
from stoker.model.errors import Conflict, WriteRefused
from stoker.objects import operations, tempurl
from stoker.objects.operations import New
from stoker.policy import authorizer
from stoker.store import queues
from stoker.store.tx import Tx
from stoker.transports.base import ObjectRef, Signed, TransportTarget

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
        new = New(account=target.project_id, container=ref.container, name=ref.name, data=b"")
        operations.put(tx, new, as_owner=True)

    def put(self, tx: Tx, target: TransportTarget, ref: ObjectRef, data: bytes) -> None:
        new = New(
            account=target.project_id,
            container=ref.container,
            name=ref.name,
            data=data,
            content_type="application/json",
            secret=True,
        )
        operations.put(tx, new, as_owner=True)

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
    public_url: str

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

    def signed(self, tx: Tx, target: TransportTarget, method: str) -> Signed:
        paths = [f"/v2/queues/{target.remote_name}/messages"]
        until = signed_urls.agents_until(target.resource_id, tx.now)
        url = self.agents_urls.sign(target.project_id, paths, [method], until)
        return Signed(
            url=f"{self.public_url}/messaging",
            project_id=url.project,
            paths=",".join(url.paths),
            methods=",".join(url.methods),
            expires=url.expires,
            signature=url.signature,
        )

    def close(self, tx: Tx, target: TransportTarget) -> None:
        self.messaging.delete_queue(tx, target.project_id, target.remote_name, as_owner=True)


@dataclass(frozen=True, slots=True)
class EmbeddedMessaging:
    """Queues that templates create in the embedded messaging service; see ``transports.base.Messaging``."""

    messaging: Messaging
    signed_urls: SignedUrls
    public_url: str

    @property
    def url(self) -> str:
        return f"{self.public_url}/messaging"

    def create(self, tx: Tx, project_id: str, queue: str, metadata: Mapping[str, Any]) -> None:
        with _audited(tx, "OS::Zaqar::Queue"):
            self.messaging.create_queue(tx, project_id, queue, metadata)

    def describe(self, tx: Tx, project_id: str, queue: str, metadata: Mapping[str, Any]) -> None:
        """Create the queue unless it exists, and set these metadata keys."""
        with _audited(tx, "OS::Zaqar::Queue"):
            self.messaging.create_queue(tx, project_id, queue, metadata)
            self.messaging.update_metadata(tx, project_id, queue, metadata)

    def delete(self, tx: Tx, project_id: str, queue: str) -> None:
        if not belongs_to_agents(queues.find(tx, project_id, queue)):
            self.messaging.delete_queue(tx, project_id, queue)

    def post(self, tx: Tx, project_id: str, queue: str, bodies: Sequence[Any], ttl: int) -> None:
        with _audited(tx, "event_sinks"):
            self.messaging.post(tx, project_id, queue, bodies, ttl=ttl)

    def sign(
        self, project_id: str, queue: str, paths: Sequence[str], methods: Sequence[str], expires: datetime
    ) -> Mapping[str, Any]:
        below = [f"/v2/queues/{queue}/{path}" for path in paths]
        return self.signed_urls.sign(project_id, below, methods, expires).to_json()

    def subscribe(self, tx: Tx, project_id: str, queue: str, body: Mapping[str, Any]) -> str:
        return self.messaging.subscriptions.subscribe(tx, self._locked_queue(tx, project_id, queue), dict(body))

    def resubscribe(self, tx: Tx, project_id: str, queue: str, id: str, body: Mapping[str, Any]) -> None:
        self.messaging.subscriptions.change(tx, self._locked_queue(tx, project_id, queue), id, dict(body))

    def unsubscribe(self, tx: Tx, project_id: str, queue: str, id: str) -> None:
        existing = queues.find(tx, project_id, queue)
        if existing is not None and not belongs_to_agents(existing):
            queues.delete_subscription(tx, existing.id, id)

    def _locked_queue(self, tx: Tx, project_id: str, queue: str) -> Queue:
        with _audited(tx, "OS::Zaqar::Subscription"):
            return self.messaging.lock_or_create(tx, project_id, queue)


@contextmanager
def _audited(tx: Tx, what: str) -> Iterator[None]:
    """
    Audit refused writes: a template cannot change a queue that belongs to a server or a deployment. Raises Conflict.
    """
    try:
        yield
    except WriteRefused as refused:
        authorizer.record_refused_write(tx, refused, actor=None, action=what)
        raise Conflict(refused.message) from None
