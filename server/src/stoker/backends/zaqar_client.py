"""Requests to the API of an external Zaqar, each about one queue."""

from __future__ import annotations

import hashlib
import hmac
import json
from collections.abc import Mapping, Sequence
from contextlib import suppress
from typing import Any
from uuid import UUID

from stoker.backends.service_client import ServiceClient, check_status, rejecting_malformed
from stoker.circuit_breaker import ServiceRejected
from stoker.store.remote_objects import RemoteObject

#: Key of a remote object's details: the signed URL for reading results.
READING = "signed"
#: Lifetime of a subscription in seconds: ten years.
_SUBSCRIBED = 315_360_000
#: Messages per page: Zaqar's limit.
_PAGE = 20
#: Fields of a signed URL, as Zaqar's ``/share`` call returns them.
_SHARED = ("project", "paths", "methods", "expires", "signature")


class ZaqarClient:
    """
    Stoker as a client of one Zaqar. The id that Zaqar requires of each client is derived from ``secret``.

    Methods raise the errors of ``ServiceClient`` and of ``check_status``.
    """

    def __init__(self, service: ServiceClient, secret: bytes) -> None:
        self._service = service
        client_id = hmac.digest(secret, b"stoker client id in zaqar", hashlib.sha256)
        self._headers = {"Client-ID": str(UUID(bytes=client_id[:16])), "Content-Type": "application/json"}

    def ping(self) -> None:
        """Check that the service answers."""
        with suppress(ServiceRejected):
            self._service.send_request("GET", "/v2/ping", headers=self._headers, signed=True)

    def close(self) -> None:
        """Close the connections."""
        self._service.close()

    def send(self, verb: str, queue: RemoteObject, below: str = "", body: Any = None) -> Any:
        """Send a request with a login in the queue's project. ``below`` is the path below the queue's."""
        content = None if body is None else json.dumps(body).encode()
        return self._service.send_request(
            verb, _path(queue) + below, project_id=queue.project_id, content=content, headers=self._headers
        )

    def purge(self, queue: RemoteObject, *resource_types: str) -> None:
        """Delete all ``messages`` or ``subscriptions`` of the queue, if it exists."""
        check_status(self.send("POST", queue, "/purge", {"resource_types": resource_types}), 204, 404)

    def share(self, queue: RemoteObject, methods: Sequence[str], until: str) -> Mapping[str, Any] | None:
        """Sign a URL for the queue's messages; None if this Zaqar does not sign URLs."""
        answer = self.send("POST", queue, "/share", {"paths": ["messages"], "methods": methods, "expires": until})
        with rejecting_malformed():
            return {name: answer.json()[name] for name in _SHARED} if answer.status_code == 200 else None

    def subscribe(self, queue: RemoteObject, url: str) -> bool:
        """Subscribe ``url`` to the queue's messages. Returns False if Zaqar refuses."""
        subscription = {"subscriber": url, "ttl": _SUBSCRIBED, "options": {}}
        answer = self.send("POST", queue, "/subscriptions", subscription)
        if answer.status_code == 201:
            # Some Zaqars require a confirmation of the subscription; for the others it has no effect.
            with rejecting_malformed():
                id = answer.json()["subscription_id"]
            self.send("PUT", queue, f"/subscriptions/{id}/confirm", {"confirmed": True})
        return answer.status_code in (201, 409)

    def list_messages(self, queue: RemoteObject) -> list[Mapping[str, Any]]:
        """Return the oldest messages, as many as one page holds; none if there is no such queue."""
        answer = self._send_signed("GET", queue, f"?echo=true&limit={_PAGE}")
        if answer.status_code in (204, 404):
            return []
        check_status(answer, 200)
        with rejecting_malformed():
            messages: list[Mapping[str, Any]] = answer.json()["messages"]
        return messages

    def delete_messages(self, queue: RemoteObject, ids: Sequence[str]) -> None:
        """Delete these messages, as far as they exist."""
        check_status(self._send_signed("DELETE", queue, f"?ids={','.join(ids)}"), 204, 404)

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
                return self._service.send_request(verb, f"{_path(queue)}/messages{query}", headers=headers, signed=True)
        return self.send(verb, queue, f"/messages{query}")


def _path(queue: RemoteObject) -> str:
    return f"/v2/queues/{queue.name}"
