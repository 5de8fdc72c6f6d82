"""What a stream of events tells, written down beforehand."""

from __future__ import annotations

import json
import threading
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any
from urllib.parse import urlencode

from client.site import Site
from support.http_stub import Asked, Said


@dataclass(frozen=True)
class Say:
    """An event."""

    name: str
    data: Any
    id: int | None = None


@dataclass(frozen=True)
class Raw:
    """Bytes as they are: half an event, for one."""

    content: bytes


@dataclass(frozen=True)
class Wait:
    """Say that the story has come here, and go on when told."""

    reached: threading.Event = field(default_factory=threading.Event)
    go: threading.Event = field(default_factory=threading.Event)


DROP = object()  # the connection ends in the middle
END = Say("end", {})
Step = Say | Raw | Wait | object


class Story:
    """Answers requests of an event stream. A drop ends one stream, and the next one goes on after it."""

    def __init__(self, site: Site, subject: str, *steps: Step) -> None:
        self.subject = subject
        self.steps = list(steps)
        #: The Last-Event-ID of each request.
        self.last_ids: list[str] = []
        self.site = site
        site.answers.insert(0, ("GET", f"/events?{urlencode({'subject': subject})}", self._answer))

    def _answer(self, asked: Asked) -> Said:
        self.last_ids.append(asked.headers.get("last-event-id", ""))
        return Said(headers={"Content-Type": "text/event-stream; charset=utf-8"}, stream=self._tell())

    def _tell(self) -> Iterator[bytes]:
        yield b"retry: 10\r\n:\r\n\r\n"
        while self.steps:
            step = self.steps.pop(0)
            if step is DROP:
                return
            if isinstance(step, Wait):
                step.reached.set()
                assert step.go.wait(60)
            elif isinstance(step, Raw):
                yield step.content
            elif isinstance(step, Say):
                head = "" if step.id is None else f"id: {step.id}\n"
                data = json.dumps({"subject": self.subject, **self.see(step)})
                yield f"{head}event: {step.name}\ndata: {data}\n\n".encode()

    def see(self, step: Say) -> Any:
        """Return the data of an event."""
        return step.data


def target(position: int, status: str, reason: str | None = None, **run: Any) -> Say:
    """What became of one server."""
    more = {"run": run} if run else {}
    return Say("target", {"position": position, "status": status, "status_reason": reason, **more})


def trigger(status: str, **more: Any) -> Say:
    return Say("trigger", {"status": status, **more})


class TriggerStory(Story):
    """A trigger of a config ``database`` on servers whose agents are silent: the story tells what becomes of it."""

    def __init__(self, site: Site, *steps: Step, servers: tuple[str, ...] = ("db1", "db2"), **more: Any) -> None:
        """``servers`` are those of the targets, new or not. ``more``: members of the trigger."""
        self.agents = {name: site.find_agent(name) for name in servers}
        config = site.account.create_config(name="database")
        body = {"config_id": config, "servers": list(self.agents), "name": "database BACKUP"}
        self.id: str = site.account.create("software_triggers", **body)["id"]
        path = f"/software_triggers/{self.id}"
        real = site.api("GET", path)["software_trigger"].pop("targets")
        by_name = {target["server_name"]: target for target in real}
        untouched = {"status": "QUEUED", "status_reason": None, "run": None}
        self.targets = [{**by_name[name], **untouched, "position": n} for n, name in enumerate(servers)]
        counts = dict.fromkeys(("queued", "running", "complete", "failed", "cancelled"), 0)
        self.state = {"status": "IN_PROGRESS", "total": len(servers), **counts, "queued": len(servers), **more}
        site.change("GET", path, self._show)
        super().__init__(site, f"trigger:{self.id}", *steps)

    def _show(self, body: Any) -> Any:
        return {"software_trigger": {**body["software_trigger"], **self.state, "targets": self.targets}}

    def see(self, step: Say) -> Any:
        """Remember what became of a target or the trigger, which its present state shows as well."""
        if step.name == "trigger":
            self.state |= step.data
        if step.name != "target":
            return step.data
        self.targets[step.data["position"]] |= step.data
        return self.targets[step.data["position"]]
