"""Queues in an external Zaqar. The name of a queue is the id of its resource."""

from __future__ import annotations

import hashlib
import hmac
import json
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from typing import Any
from uuid import UUID

from stoker.backends.remote_object_controller import AGENT, RemoteObjects
from stoker.backends.result_polling import TOLERANCE, Result
from stoker.backends.service_client import ServiceClient, check_status, rejecting_malformed
from stoker.circuit_breaker import ServiceRejected
from stoker.embedded import DOCUMENT_TTL
from stoker.messaging.signed_urls import agents_until, format_time
from stoker.store import remote_objects, rows
from stoker.store.remote_objects import RemoteObject
from stoker.store.tx import Tx
from stoker.transports.base import Signed, TransportTarget

#: Expiry of the URL for reading results: no deployment outlasts it. Zaqar's default is one day.
_SIGNED_UNTIL = "2038-01-19T03:00:00"
#: Lifetime of a subscription in seconds: ten years.
_SUBSCRIBED = 315_360_000
#: Messages per page: Zaqar's limit.
_PAGE = 20
#: Key of a remote object's details: the signed URL for reading results.
_READING = "signed"
#: The method of an agent that reads documents from the queue and posts no results.
_FINDING = "GET"
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
        self.remote_objects.open(tx, remote_objects.QUEUE, target.resource_id, target, apply=not keep_newest)

    def sign(self, tx: Tx, target: TransportTarget, method: str) -> bool:
        self.remote_objects.open(tx, remote_objects.QUEUE, target.resource_id, target, signed_method=method)
        queue = remote_objects.find_by_name(tx, remote_objects.QUEUE, target.resource_id)
        return queue is not None and AGENT in queue.details

    def signed(self, tx: Tx, target: TransportTarget, method: str) -> Signed | None:
        queue = remote_objects.find_by_name(tx, remote_objects.QUEUE, target.resource_id)
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
        self.remote_objects.put(tx, remote_objects.QUEUE, target.resource_id, target, rows.dump(body))

    def close(self, tx: Tx, target: TransportTarget) -> None:
        self.remote_objects.close(tx, remote_objects.QUEUE, target.resource_id)

    def await_result(self, tx: Tx, target: TransportTarget, until: datetime | None = None) -> None:
        self.remote_objects.listen(tx, remote_objects.QUEUE, target.resource_id, until)


class ZaqarDriver:
    """
    The driver for queues in Zaqar.

    ``caller`` returns the URL to which Zaqar posts a resource's messages; None: Stoker does not subscribe.
    """

    def __init__(self, service: ServiceClient, secret: bytes, caller: Callable[[str], str] | None) -> None:
        self._client = service
        self._caller = caller
        client = hmac.digest(secret, b"stoker client id in zaqar", hashlib.sha256)
        self._headers = {"Client-ID": str(UUID(bytes=client[:16])), "Content-Type": "application/json"}

    def prepare(self) -> None:
        """Only check that the service answers: queues are created one by one."""
        with suppress(ServiceRejected):
            self._client.send_request("GET", "/v2/ping", headers=self._headers, signed=True)

    def apply(self, remote_object: RemoteObject) -> Mapping[str, Any]:
        details = dict(remote_object.details)
        if remote_object.signed_method is not None:
            details[AGENT] = self._sign(remote_object)
        if remote_object.body is not None:
            check_status(self._ask("POST", remote_object, "/purge", {"resource_types": ["messages"]}), 204, 404)
            message = {"body": rows.load(remote_object.body), "ttl": DOCUMENT_TTL}
            check_status(self._ask("POST", remote_object, "/messages", {"messages": [message]}), 201)
        elif remote_object.signed_method != _FINDING and _READING not in details:
            details |= self._is_ready(remote_object)
        return details

    def remove(self, remote_object: RemoteObject) -> None:
        check_status(
            self._ask("POST", remote_object, "/purge", {"resource_types": ["messages", "subscriptions"]}), 204, 404
        )
        check_status(self._ask("DELETE", remote_object), 204, 404)

    def close(self) -> None:
        self._client.close()

    def names(self) -> Iterator[list[str]]:
        """Yield nothing, because a project's queues may belong to other clients."""
        return iter(())

    def discard(self, name: str) -> None:
        """Not used, because ``names`` yields nothing."""

    def poll(self, remote_object: RemoteObject, since: datetime) -> list[Result]:
        """Return the new messages as results, and delete the messages of earlier runs."""
        answer = self._messages("GET", remote_object, f"?echo=true&limit={_PAGE}")
        if answer.status_code in (204, 404):
            return []
        check_status(answer, 200)
        with rejecting_malformed():
            messages = answer.json()["messages"]
            ids = [_id(message) for message in messages]
            if remote_object.last_result in ids:  # stored but not deleted yet, like all messages before it
                messages = messages[ids.index(remote_object.last_result) + 1 :]
            age = datetime.now(UTC) - since + TOLERANCE
            fresh = [message for message in messages if timedelta(seconds=message["age"]) <= age]
            results = [Result(_id(message), rows.dump(message["body"]).encode()) for message in fresh]
        stale = [id for id in ids if id not in {result.mark for result in results}]
        if stale:  # messages of an earlier run would fill the page
            self._delete(remote_object, stale)
        return results

    def acknowledge(self, remote_object: RemoteObject, results: list[Result]) -> None:
        self._delete(remote_object, [result.mark for result in results])

    def _is_ready(self, remote_object: RemoteObject) -> Mapping[str, Any]:
        """
        Create a queue for results.

        Returns its details: a signed URL for reading, if Zaqar signs URLs, and whether Zaqar notifies Stoker of
        messages.
        """
        check_status(self._ask("PUT", remote_object), 201, 204)
        signed = self._share(remote_object, ["GET", "DELETE"], _SIGNED_UNTIL)
        calls = self._caller is not None and self._subscribe(remote_object, self._caller(remote_object.resource_id))
        return {_READING: signed, "calls": calls}

    def _sign(self, remote_object: RemoteObject) -> Mapping[str, Any] | None:
        """Return the URL of the resource's agent, current or new; None if this Zaqar does not sign URLs."""
        current: Mapping[str, Any] | None = remote_object.details.get(AGENT)
        until = format_time(agents_until(remote_object.resource_id, datetime.now(UTC)))
        if current and current["expires"] == until and current["methods"] == [remote_object.signed_method]:
            return current
        return self._share(remote_object, [str(remote_object.signed_method)], until)

    def _share(self, remote_object: RemoteObject, methods: Sequence[str], until: str) -> Mapping[str, Any] | None:
        """Sign a URL for the queue's messages; None if this Zaqar does not sign URLs."""
        shared = self._ask(
            "POST", remote_object, "/share", {"paths": ["messages"], "methods": methods, "expires": until}
        )
        with rejecting_malformed():
            return {name: shared.json()[name] for name in _SHARED} if shared.status_code == 200 else None

    def _subscribe(self, remote_object: RemoteObject, url: str) -> bool:
        """Subscribe to the queue's messages. Returns False if Zaqar refuses; polling finds the messages then."""
        wanted = {"subscriber": url, "ttl": _SUBSCRIBED, "options": {}}
        answer = self._ask("POST", remote_object, "/subscriptions", wanted)
        if answer.status_code == 201:
            # Some Zaqars require a confirmation of the subscription; for the others it has no effect.
            with rejecting_malformed():
                id = answer.json()["subscription_id"]
            self._ask("PUT", remote_object, f"/subscriptions/{id}/confirm", {"confirmed": True})
        return answer.status_code in (201, 409)

    def _messages(self, verb: str, remote_object: RemoteObject, query: str) -> Any:
        """Send a request with the signed URL; with a login if Zaqar signs no URLs or no longer accepts this URL."""
        signed = remote_object.details.get(_READING)
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
                return self._client.send_request(
                    verb, f"{_path(remote_object)}/messages{query}", headers=headers, signed=True
                )
        return self._ask(verb, remote_object, f"/messages{query}")

    def _delete(self, remote_object: RemoteObject, ids: Sequence[str]) -> None:
        check_status(self._messages("DELETE", remote_object, f"?ids={','.join(ids)}"), 204, 404)

    def _ask(self, verb: str, remote_object: RemoteObject, below: str = "", body: Any = None) -> Any:
        content = None if body is None else json.dumps(body).encode()
        return self._client.send_request(
            verb,
            _path(remote_object) + below,
            project_id=remote_object.project_id,
            content=content,
            headers=self._headers,
        )


def _path(remote_object: RemoteObject) -> str:
    return f"/v2/queues/{remote_object.name}"


def _id(message: Mapping[str, Any]) -> str:
    """Return the message's id. Some versions of Zaqar only return it as part of ``href``."""
    return str(message.get("id") or message["href"].rpartition("/")[2].partition("?")[0])
