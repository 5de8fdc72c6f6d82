"""Software deployments over HTTP, and following what one writes while it runs."""

from __future__ import annotations

import time
from collections.abc import Iterator, Mapping
from typing import TYPE_CHECKING, Any, cast

from stoker_client.errors import NoEvents
from stoker_client.events import following
from stoker_client.parts import part, segment
from stoker_client.shapes import Deployment, LogChunk, LogPage, Run
from stoker_client.sse import Event

if TYPE_CHECKING:
    from stoker_client.wire import Wire

HOLD = 25  # seconds the service may hold a question for news; well under what proxies cut off
RUNNING = "IN_PROGRESS"
_NEVER = 2**31 - 1  # the last number that a service reads: nothing is written after it


class Deployments:
    """Calls on software deployments."""

    def __init__(self, wire: Wire) -> None:
        self._wire = wire

    def all(self, server_id: str | None = None) -> list[Deployment]:
        """All deployments of the project, or of one server, oldest first."""
        answer = self._wire.get("/software_deployments", {"server_id": server_id})
        return cast(list[Deployment], part(answer, "software_deployments"))

    def show(self, id_: str, *, patient: bool = False) -> Deployment:
        """One deployment."""
        return cast(Deployment, part(self._wire.get(_path(id_), patient=patient), "software_deployment"))

    def create(self, body: Mapping[str, Any]) -> Deployment:
        """Join a config with a server."""
        answer = self._wire.send("POST", "/software_deployments", body)
        return cast(Deployment, part(answer, "software_deployment"))

    def delete(self, id_: str) -> None:
        """Delete a deployment; its derived config stays (``Configs.delete_derived``)."""
        self._wire.send("DELETE", _path(id_))

    def runs(self, id_: str) -> list[Run]:
        """Every run there was, newest first."""
        return cast(list[Run], part(self._wire.get(f"{_path(id_)}/runs"), "runs"))

    def cancel(self, id_: str, *, force: bool = False) -> Deployment:
        """End the run under way: its agent is told to stop it; with ``force``, what it says is not waited for."""
        body = {"force": True} if force else {}
        return cast(Deployment, part(self._wire.send("POST", f"{_path(id_)}/cancel", body), "software_deployment"))

    def retry(self, id_: str) -> Deployment:
        """Run a failed one again, in place."""
        return cast(Deployment, part(self._wire.send("POST", f"{_path(id_)}/retry", {}), "software_deployment"))

    def log_page(self, id_: str, after: int = 0, *, wait: int = 0) -> LogPage:
        """What was written after ``after``; with ``wait``, held until there is something or it is over."""
        query = {"after": after, "wait": wait or None}
        page = self._wire.get(f"{_path(id_)}/logs", query, patient=bool(wait), wait=wait)
        part(page, "logs")
        return cast(LogPage, page)

    def logs(self, id_: str) -> Iterator[LogChunk]:
        """Everything written so far."""
        after = 0
        while (page := self.log_page(id_, after))["logs"]:
            yield from page["logs"]
            after = page["next"]

    def events(self, id_: str) -> Iterator[Event]:
        """What happens to it until it is over: ``log``, ``progress``, ``status``, and at last ``end``."""
        return following(self._wire, f"{_path(id_)}/logs")

    def stream(self, id_: str) -> Iterator[LogChunk]:
        """Everything written and what is being written, chunk by chunk, until the deployment is over."""
        try:
            for event in self.events(id_):
                if event.name == "log":
                    yield event.json()
        except NoEvents:  # raised by the first question only: nothing was told yet
            for page in self.follow(id_):
                yield from page["logs"]

    def wait(self, id_: str) -> None:
        """Return once it is over, whatever it writes."""
        for _ in self.follow(id_, after=_NEVER):
            pass

    def follow(self, id_: str, after: int = 0) -> Iterator[LogPage]:
        """Pages of what is written after ``after``, as it is written, until it is over and nothing is left."""
        while True:
            asked = time.monotonic()
            page = self.log_page(id_, after, wait=HOLD)
            after = page["next"]
            yield page
            if page["logs"]:
                continue
            if page["status"] != RUNNING:
                return
            _breathe(since=asked)


def _breathe(since: float) -> None:
    """Keep a service that does not hold questions from being asked without end."""
    if time.monotonic() - since < 0.5:
        time.sleep(0.5)


def _path(id_: str) -> str:
    return f"/software_deployments/{segment(id_)}"
