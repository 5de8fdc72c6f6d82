"""Queues in an external Zaqar, with the names of ``model.ids.remote_name``."""

from __future__ import annotations

import hashlib
import hmac
import json
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Any
from uuid import UUID

from msgspec import convert

from stoker.backends.remote_object_controller import AGENT, RemoteObjects
from stoker.backends.result_polling import TOLERANCE, Result
from stoker.embedded import DOCUMENT_TTL
from stoker.failures import ServiceRejected
from stoker.messaging.signed_urls import SignedUrl, agents_until, format_time
from stoker.service_client import ServiceClient, check_status, rejecting_malformed
from stoker.store import remote_objects, rows
from stoker.store.remote_objects import RemoteObject
from stoker.store.tx import Tx
from stoker.transports.base import TransportTarget

#: Expiry of the URL for reading results: no deployment outlasts it. Zaqar's default is one day.
_SIGNED_UNTIL = "2038-01-19T03:00:00"
#: The method of an agent that reads documents from the queue and posts no results.
_FINDING = "GET"
#: Key of a remote object's details: the signed URL for reading results.
READING = "signed"
#: Lifetime of a subscription in seconds: ten years.
_SUBSCRIBED = 315_360_000
#: Messages per page: Zaqar's limit.
_PAGE = 20
#: Fields of a signed URL, as Zaqar's ``/share`` call returns them.
_SHARED = ("project", "paths", "methods", "expires", "signature")


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

    def signed(self, tx: Tx, target: TransportTarget, method: str) -> SignedUrl | None:
        queue = remote_objects.find_by_name(tx, remote_objects.QUEUE, target.remote_name)
        url = queue.details.get(AGENT) if queue is not None else None
        return convert(url, SignedUrl) if url and url["methods"] == [method] else None

    def replace(self, tx: Tx, target: TransportTarget, body: Any) -> None:
        self.remote_objects.put(tx, remote_objects.QUEUE, target.remote_name, target, rows.dump(body))

    def close(self, tx: Tx, target: TransportTarget) -> None:
        self.remote_objects.close(tx, remote_objects.QUEUE, target.remote_name)

    def await_result(self, tx: Tx, target: TransportTarget, until: datetime | None = None) -> None:
        self.remote_objects.listen(tx, remote_objects.QUEUE, target.remote_name, until)


class ZaqarDriver:
    """
    The driver for queues in Zaqar.

    The id that Zaqar requires of each client derives from ``secret``. ``caller`` returns the URL to which Zaqar posts a
    resource's messages; None: Stoker does not subscribe. ``now`` returns the site's time.
    """

    def __init__(
        self,
        service: ServiceClient,
        secret: bytes,
        caller: Callable[[str], str] | None,
        now: Callable[[], datetime],
    ) -> None:
        self._service = service
        client_id = hmac.digest(secret, b"stoker client id in zaqar", hashlib.sha256)
        self._headers = {"Client-ID": str(UUID(bytes=client_id[:16])), "Content-Type": "application/json"}
        self._caller = caller
        self._now = now

    def prepare(self) -> None:
        """Only check that the service answers: queues are created one by one."""
        with suppress(ServiceRejected):
            self._service.send("GET", "/v2/ping", headers=self._headers, signed=True)

    def apply(self, remote_object: RemoteObject) -> Mapping[str, Any]:
        details = dict(remote_object.details)
        if remote_object.signed_method is not None:
            details[AGENT] = self._sign(remote_object)
        if remote_object.body is not None:
            self._purge(remote_object, "messages")
            message = {"body": rows.load(remote_object.body), "ttl": DOCUMENT_TTL}
            check_status(self._send("POST", remote_object, "/messages", {"messages": [message]}), 201)
        elif remote_object.signed_method != _FINDING and READING not in details:
            details |= self._create(remote_object)
        return details

    def remove(self, remote_object: RemoteObject) -> None:
        self._purge(remote_object, "messages", "subscriptions")
        check_status(self._send("DELETE", remote_object), 204, 404)

    def close(self) -> None:
        self._service.close()

    def names(self) -> Iterator[list[str]]:
        """Yield nothing, because a project's queues may belong to other clients."""
        return iter(())

    def discard(self, name: str) -> None:
        """Not used, because ``names`` yields nothing."""

    def poll(self, remote_object: RemoteObject, since: datetime) -> list[Result]:
        """Return the new messages as results, and delete the messages of earlier runs."""
        answer = self._send_signed("GET", remote_object, f"?echo=true&limit={_PAGE}")
        if answer.status_code in (204, 404):
            return []
        check_status(answer, 200)
        with rejecting_malformed():
            messages: list[Mapping[str, Any]] = answer.json()["messages"]
            ids = [_id(message) for message in messages]
            if remote_object.last_result in ids:  # stored but not deleted yet, like all messages before it
                messages = messages[ids.index(remote_object.last_result) + 1 :]
            results = _results(messages, self._now() - since + TOLERANCE)
        new = {result.mark for result in results}
        stale = [id for id in ids if id not in new]
        if stale:  # messages of an earlier run would fill the page
            self.acknowledge(remote_object, [Result(id, None) for id in stale])
        return results

    def acknowledge(self, remote_object: RemoteObject, results: list[Result]) -> None:
        """Delete the messages, as far as they exist."""
        ids = ",".join(result.mark for result in results)
        check_status(self._send_signed("DELETE", remote_object, f"?ids={ids}"), 204, 404)

    def _create(self, remote_object: RemoteObject) -> Mapping[str, Any]:
        """
        Create a queue for results.

        Returns its details: a signed URL for reading, if Zaqar signs URLs, and whether Zaqar notifies Stoker of
        messages. Polling finds the messages otherwise.
        """
        check_status(self._send("PUT", remote_object), 201, 204)
        signed = self._share(remote_object, ["GET", "DELETE"], _SIGNED_UNTIL)
        if self._caller is None:
            return {READING: signed, "calls": False}
        subscription = {"subscriber": self._caller(remote_object.resource_id), "ttl": _SUBSCRIBED, "options": {}}
        answer = self._send("POST", remote_object, "/subscriptions", subscription)
        if answer.status_code == 201:
            # Some Zaqars require a confirmation of the subscription; for the others it has no effect.
            with rejecting_malformed():
                id = answer.json()["subscription_id"]
            self._send("PUT", remote_object, f"/subscriptions/{id}/confirm", {"confirmed": True})
        return {READING: signed, "calls": answer.status_code in (201, 409)}

    def _sign(self, remote_object: RemoteObject) -> Mapping[str, Any] | None:
        """Return the URL of the resource's agent, current or new; None if this Zaqar does not sign URLs."""
        current: Mapping[str, Any] | None = remote_object.details.get(AGENT)
        until = format_time(agents_until(remote_object.resource_id, self._now()))
        if current and current["expires"] == until and current["methods"] == [remote_object.signed_method]:
            return current
        return self._share(remote_object, [str(remote_object.signed_method)], until)

    def _send(self, verb: str, queue: RemoteObject, below: str = "", body: Any = None) -> Any:
        """Send a request with a login in the queue's project. ``below`` is the path below the queue's."""
        content = None if body is None else json.dumps(body).encode()
        return self._service.send(
            verb, _path(queue) + below, project_id=queue.project_id, content=content, headers=self._headers
        )

    def _purge(self, queue: RemoteObject, *resource_types: str) -> None:
        """Delete all ``messages`` or ``subscriptions`` of the queue, if it exists."""
        check_status(self._send("POST", queue, "/purge", {"resource_types": resource_types}), 204, 404)

    def _share(self, queue: RemoteObject, methods: Sequence[str], until: str) -> Mapping[str, Any] | None:
        """Sign a URL for the queue's messages; None if this Zaqar does not sign URLs."""
        answer = self._send("POST", queue, "/share", {"paths": ["messages"], "methods": methods, "expires": until})
        with rejecting_malformed():
            return {name: answer.json()[name] for name in _SHARED} if answer.status_code == 200 else None

    def _send_signed(self, verb: str, queue: RemoteObject, query: str) -> Any:
        """Send a request with the signed URL; with a login if Zaqar signs no URLs or no longer accepts this URL."""
        signed = queue.details.get(READING)
        if signed:
            headers = {
                **self._headers,
                "X-Project-Id": signed["project"],
                "URL-Signature": signed["signature"],
                "URL-Expires": signed["expires"],
                "URL-Paths": ",".join(signed["paths"]),
                "URL-Methods": ",".join(signed["methods"]),
            }
            with suppress(ServiceRejected):
                return self._service.send(verb, f"{_path(queue)}/messages{query}", headers=headers, signed=True)
        return self._send(verb, queue, f"/messages{query}")


def _results(messages: Sequence[Mapping[str, Any]], age: timedelta) -> list[Result]:
    """Return the messages up to this age as results."""
    fresh = [message for message in messages if timedelta(seconds=message["age"]) <= age]
    # As ASCII: a lone surrogate, which the decoder of signals refuses, must not prevent other results.
    return [Result(_id(message), json.dumps(message["body"]).encode()) for message in fresh]


def _id(message: Mapping[str, Any]) -> str:
    """Return the message's id. Some versions of Zaqar only return it as part of ``href``."""
    return str(message.get("id") or message["href"].rpartition("/")[2].partition("?")[0])


def _path(queue: RemoteObject) -> str:
    return f"/v2/queues/{queue.name}"
