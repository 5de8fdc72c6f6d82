"""Waits until a run begins, with a time limit and messages about what the run waits for."""

from __future__ import annotations

import time
from collections.abc import Sequence
from dataclasses import dataclass, field

from stoker_client.cli._output import echo
from stoker_client.client import Client
from stoker_client.errors import TimedOut
from stoker_client.shapes import Deployment, LogPage, Server

#: Seconds between two polls of the deployment.
_LOOK = 5
#: The status reason of a deployment that waits for its agent only.
_FOR_AGENT = "Waiting for the agent"


@dataclass(frozen=True)
class Limit:
    """The time within which a run must begin, in seconds; 0 means no limit."""

    seconds: int
    _start: float = field(default_factory=time.monotonic)

    @property
    def left(self) -> float:
        """Return the remaining seconds, at least 0."""
        return max(self._start + self.seconds - time.monotonic(), 0) if self.seconds else float("inf")

    def __str__(self) -> str:
        return f"for {self.seconds} s at most (--wait-timeout)" if self.seconds else "as long as it takes"


def report_absence(servers: Sequence[Server], limit: Limit) -> None:
    """Print which servers are not online, and that the run waits for them."""
    for server in servers:
        if server["status"] != "ONLINE":
            seen = f" (last seen {server['last_seen']})" if server.get("last_seen") else ""
            status = server["status"]
            echo(f"stoker: {server['name']} is {status}{seen}: waiting for its agent, {limit}", err=True)


def wait_for_start(client: Client, server: Server, deployment: Deployment, limit: Limit) -> None:
    """
    Return when the deployment has begun or ended. Print what it waits for.

    Raises TimedOut if the limit passes first.
    """
    reason = deployment["status_reason"] or _FOR_AGENT
    reported = ""
    while deployment["status"] == "IN_PROGRESS":
        if reason not in (_FOR_AGENT, reported):
            echo(f"stoker: {reason}; waiting {limit}", err=True)
            reported = reason
        page = client.deployments.log_page(deployment["id"], 0, wait=max(int(min(_LOOK, limit.left)), 1))
        if _shows_run(page) or _has_begun(client, deployment["id"]):
            return
        reason = page.get("status_reason") or _FOR_AGENT
        if reason == _FOR_AGENT and server["status"] == "ONLINE":
            reason = f"{server['name']} has not started the run: it is busy, or its agent has stopped"
        if not limit.left:
            why = server["status"] if reason == _FOR_AGENT else reason
            raise TimedOut(f"nothing ran on {server['name']} within {limit.seconds} s ({why}); the run is cancelled")


def _shows_run(page: LogPage) -> bool:
    return bool(page["logs"]) or page["status"] != "IN_PROGRESS" or bool(page.get("progress"))


def _has_begun(client: Client, id_: str) -> bool:
    """Whether an agent has received the run, according to the service."""
    runs = client.deployments.runs(id_)
    return bool(runs) and bool(runs[0].get("delivered_time") or runs[0].get("end_time"))
