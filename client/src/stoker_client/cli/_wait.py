"""Waits for deployments: until their runs begin, with a time limit, and until they end."""

from __future__ import annotations

import math
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field

from stoker_client.cli._output import echo
from stoker_client.client import Client
from stoker_client.deployments import RUNNING, name_of, server_name_of
from stoker_client.errors import ClientError, TimedOut
from stoker_client.failure_text import failure_text
from stoker_client.polling import attempts
from stoker_client.shapes import Deployment, LogPage, Server

#: Seconds that the service may delay an answer about a run that has not begun.
_LOOK = 5
#: The status reason of a deployment that waits for its agent only.
_FOR_AGENT = "Waiting for the agent"


@contextmanager
def explaining_interrupt(what: str, *, doing: str = "waiting") -> Iterator[None]:
    """Print a message after Ctrl-C, which ends only the command: ``what`` describes the state of what continues."""
    try:
        yield
    except KeyboardInterrupt:
        echo(f"stoker: no longer {doing}; {what}", err=True)
        raise


@contextmanager
def naming_remains(noun: str, id_: str, config_id: str, *, show: str, where: str = "") -> Iterator[None]:
    """
    After an error, print that a run continues (``where``), which command shows it, and which ones end and remove it.

    A run that has not begun in time is an exception: the caller removes it.
    """
    try:
        yield
    except TimedOut:
        raise
    except BaseException:
        echo(
            f"stoker: {noun} {id_} continues{where}: `stoker {noun} {show} --follow {id_}` shows it, `stoker {noun}"
            f" cancel {id_}` ends it, `stoker {noun} delete {id_}` and `stoker config delete {config_id}` remove it",
            err=True,
        )
        raise


def report_waiting(deployment: Deployment) -> None:
    """Print the reason why a new deployment waits, unless it only waits for its agent."""
    reason = deployment["status_reason"] or _FOR_AGENT
    if deployment["status"] == RUNNING and reason.startswith("Waiting") and reason != _FOR_AGENT:
        echo(f"stoker: {reason}", err=True)


def wait_for(client: Client, id_: str) -> Deployment:
    """Wait until a deployment ends. Raises ClientError if it failed."""
    wait_for_end(client, id_, f"continues (`stoker deployment cancel {id_}` ends it)")
    deployment = client.deployments.show(id_, patient=True)
    if deployment["status"] == "FAILED":
        raise ClientError(failure_line(deployment))
    return deployment


def wait_for_end(client: Client, id_: str, reminder: str) -> None:
    """Wait until a deployment ends. ``reminder`` describes its state after Ctrl-C."""
    with explaining_interrupt(f"deployment {id_} {reminder}"):
        client.deployments.wait(id_)


def failure_line(deployment: Deployment) -> str:
    """Return a line such as ``shop/setup on web1: exit 127: script: 7: nosuchcommand: not found``."""
    reason = failure_text(deployment["status_reason"], deployment.get("output_values"))
    return f"{name_of(deployment)} on {server_name_of(deployment)}: {reason}"


@dataclass(frozen=True)
class Limit:
    """The time within which a run must begin, in seconds; 0 means no limit."""

    seconds: int
    _start: float = field(default_factory=time.monotonic)

    @property
    def end(self) -> float:
        """The time (time.monotonic) at which the limit passes."""
        return self._start + self.seconds if self.seconds else math.inf

    @property
    def left(self) -> float:
        """The remaining seconds, at least 0."""
        return max(self.end - time.monotonic(), 0)

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
    if deployment["status"] != RUNNING:
        return
    reason, reported = deployment["status_reason"] or _FOR_AGENT, ""
    for _ in attempts(limit.end, share=1):
        if reason not in (_FOR_AGENT, reported):
            echo(f"stoker: {reason}; waiting {limit}", err=True)
            reported = reason
        page = client.deployments.log_page(deployment["id"], 0, wait=max(int(min(_LOOK, limit.left)), 1))
        if _shows_run(page) or _has_begun(client, deployment["id"]):
            return
        reason = page.get("status_reason") or _FOR_AGENT
        if reason == _FOR_AGENT and server["status"] == "ONLINE":
            reason = f"{server['name']} has not started the run: it is busy, or its agent has stopped"
    why = server["status"] if reason == _FOR_AGENT else reason
    raise TimedOut(f"nothing ran on {server['name']} within {limit.seconds} s ({why}); the run is cancelled")


def _shows_run(page: LogPage) -> bool:
    return bool(page["logs"]) or page["status"] != RUNNING or bool(page.get("progress"))


def _has_begun(client: Client, id_: str) -> bool:
    """Whether an agent has received the run, according to the service."""
    runs = client.deployments.runs(id_)
    return bool(runs) and bool(runs[0].get("delivered_time") or runs[0].get("end_time"))
