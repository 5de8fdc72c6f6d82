"""Queues in an external Zaqar, with the names of ``model.ids.remote_name``."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Any

from stoker.backends.remote_object_controller import AGENT, RemoteObjects
from stoker.backends.result_polling import TOLERANCE, Result
from stoker.backends.service_client import ServiceClient, check_status, rejecting_malformed
from stoker.backends.zaqar_client import READING, ZaqarClient
from stoker.embedded import DOCUMENT_TTL
from stoker.messaging.signed_urls import agents_until, format_time
from stoker.store import remote_objects, rows
from stoker.store.remote_objects import RemoteObject
from stoker.store.tx import Tx
from stoker.transports.base import Signed, TransportTarget

#: Expiry of the URL for reading results: no deployment outlasts it. Zaqar's default is one day.
_SIGNED_UNTIL = "2038-01-19T03:00:00"
#: The method of an agent that reads documents from the queue and posts no results.
_FINDING = "GET"


@dataclass(frozen=True, slots=True)
class ZaqarQueues:
    """The messaging service for transports; all methods run inside a transaction."""

    remote_objects: RemoteObjects
    url: str

    def open(self, tx: Tx, target: TransportTarget, *, keep_newest: bool) -> None:
        """
        Record the queue. Zaqar creates a document's queue with the first message, which is posted again before it
        expires.
        """
        self.remote_objects.open(tx, remote_objects.QUEUE, target.remote_name, target, apply=not keep_newest)

    def sign(self, tx: Tx, target: TransportTarget, method: str) -> bool:
        self.remote_objects.open(tx, remote_objects.QUEUE, target.remote_name, target, signed_method=method)
        queue = remote_objects.find_by_name(tx, remote_objects.QUEUE, target.remote_name)
        return queue is not None and AGENT in queue.details

    def signed(self, tx: Tx, target: TransportTarget, method: str) -> Signed | None:
        queue = remote_objects.find_by_name(tx, remote_objects.QUEUE, target.remote_name)
        url = queue.details.get(AGENT) if queue is not None else None
        if not url or url["methods"] != [method]:
            return None
        return Signed(
            url=self.url,
            project_id=url["project"],
            paths=",".join(url["paths"]),
            methods=method,
            expires=url["expires"],
            signature=url["signature"],
        )

    def replace(self, tx: Tx, target: TransportTarget, body: Any) -> None:
        self.remote_objects.put(tx, remote_objects.QUEUE, target.remote_name, target, rows.dump(body))

    def close(self, tx: Tx, target: TransportTarget) -> None:
        self.remote_objects.close(tx, remote_objects.QUEUE, target.remote_name)

    def await_result(self, tx: Tx, target: TransportTarget, until: datetime | None = None) -> None:
        self.remote_objects.listen(tx, remote_objects.QUEUE, target.remote_name, until)


class ZaqarDriver:
    """
    The driver for queues in Zaqar.

    ``caller`` returns the URL to which Zaqar posts a resource's messages; None: Stoker does not subscribe. ``now``
    returns the site's time.
    """

    def __init__(
        self,
        service: ServiceClient,
        secret: bytes,
        caller: Callable[[str], str] | None,
        now: Callable[[], datetime],
    ) -> None:
        self._client = ZaqarClient(service, secret)
        self._caller = caller
        self._now = now

    def prepare(self) -> None:
        """Only check that the service answers: queues are created one by one."""
        self._client.ping()

    def apply(self, remote_object: RemoteObject) -> Mapping[str, Any]:
        details = dict(remote_object.details)
        if remote_object.signed_method is not None:
            details[AGENT] = self._sign(remote_object)
        if remote_object.body is not None:
            self._client.purge(remote_object, "messages")
            message = {"body": rows.load(remote_object.body), "ttl": DOCUMENT_TTL}
            check_status(self._client.send("POST", remote_object, "/messages", {"messages": [message]}), 201)
        elif remote_object.signed_method != _FINDING and READING not in details:
            details |= self._create(remote_object)
        return details

    def remove(self, remote_object: RemoteObject) -> None:
        self._client.purge(remote_object, "messages", "subscriptions")
        check_status(self._client.send("DELETE", remote_object), 204, 404)

    def close(self) -> None:
        self._client.close()

    def names(self) -> Iterator[list[str]]:
        """Yield nothing, because a project's queues may belong to other clients."""
        return iter(())

    def discard(self, name: str) -> None:
        """Not used, because ``names`` yields nothing."""

    def poll(self, remote_object: RemoteObject, since: datetime) -> list[Result]:
        """Return the new messages as results, and delete the messages of earlier runs."""
        messages = self._client.list_messages(remote_object)
        with rejecting_malformed():
            ids = [_id(message) for message in messages]
            if remote_object.last_result in ids:  # stored but not deleted yet, like all messages before it
                messages = messages[ids.index(remote_object.last_result) + 1 :]
            age = self._now() - since + TOLERANCE
            fresh = [message for message in messages if timedelta(seconds=message["age"]) <= age]
            # As ASCII: a lone surrogate, which the decoder of signals refuses, must not prevent other results.
            results = [Result(_id(message), json.dumps(message["body"]).encode()) for message in fresh]
        stale = [id for id in ids if id not in {result.mark for result in results}]
        if stale:  # messages of an earlier run would fill the page
            self._client.delete_messages(remote_object, stale)
        return results

    def acknowledge(self, remote_object: RemoteObject, results: list[Result]) -> None:
        self._client.delete_messages(remote_object, [result.mark for result in results])

    def _create(self, remote_object: RemoteObject) -> Mapping[str, Any]:
        """
        Create a queue for results.

        Returns its details: a signed URL for reading, if Zaqar signs URLs, and whether Zaqar notifies Stoker of
        messages. Polling finds the messages otherwise.
        """
        check_status(self._client.send("PUT", remote_object), 201, 204)
        signed = self._client.share(remote_object, ["GET", "DELETE"], _SIGNED_UNTIL)
        caller = self._caller
        calls = caller is not None and self._client.subscribe(remote_object, caller(remote_object.resource_id))
        return {READING: signed, "calls": calls}

    def _sign(self, remote_object: RemoteObject) -> Mapping[str, Any] | None:
        """Return the URL of the resource's agent, current or new; None if this Zaqar does not sign URLs."""
        current: Mapping[str, Any] | None = remote_object.details.get(AGENT)
        until = format_time(agents_until(remote_object.resource_id, self._now()))
        if current and current["expires"] == until and current["methods"] == [remote_object.signed_method]:
            return current
        return self._client.share(remote_object, [str(remote_object.signed_method)], until)


def _id(message: Mapping[str, Any]) -> str:
    """Return the message's id. Some versions of Zaqar only return it as part of ``href``."""
    return str(message.get("id") or message["href"].rpartition("/")[2].partition("?")[0])
