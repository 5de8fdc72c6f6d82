"""``stoker run`` on one server: a deployment of a temporary config; and the time limit until a run begins."""

from __future__ import annotations

import math
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Any, TypeVar

from stoker_client.cli._logs import LogPrinter
from stoker_client.cli._output import echo
from stoker_client.cli._runs import summarize
from stoker_client.cli._wait import FOR_AGENT, deployment_failure
from stoker_client.client import Client
from stoker_client.deployments import RUNNING
from stoker_client.errors import TimedOut
from stoker_client.results import exit_code
from stoker_client.shapes import Deployment, LogChunk, LogPage, Server
from stoker_client.updates import attempts

Started = TypeVar("Started")
#: Seconds that the service may delay an answer about a run that has not begun.
_LOOK = 5


def run_one(
    client: Client, server: Server, script: str, body: Mapping[str, Any], limit: Limit, *, keep: bool, raw: bool
) -> int:
    """
    Run ``script`` on a server, print the output and return the exit code.

    ``body`` has members of the deployment. Raises TimedOut if the run has not begun within ``limit``. ``keep`` keeps
    the deployment and the config.
    """
    config_id, run = start_script(client, script, body, lambda config_id: client.deployments.create({
        **body, "config_id": config_id, "server_id": server["id"], "action": "CREATE",
        "signal_transport": "STOKER_SIGNAL",
    }))  # fmt: skip
    id_ = run["id"]

    def delete() -> None:
        client.deployments.delete(id_)
        client.configs.delete_derived(run["config_id"])
        client.configs.delete(config_id)

    try:
        with naming_remains("deployment", id_, config_id, show="logs", where=f" on {server['name']}"):
            _wait_for_start(client, server, run, limit)
            deployment = _stream(client, id_, raw=raw)
    except TimedOut:
        client.deployments.cancel(id_, force=True)
        delete()
        raise
    _print_result(server, deployment)
    if keep:
        echo(f"stoker: kept: deployment {id_}, config {config_id}", err=True)
    else:
        delete()
    return exit_code(deployment)


def start_script(
    client: Client, script: str, body: Mapping[str, Any], create: Callable[[str], Started]
) -> tuple[str, Started]:
    """
    Create a config for ``script``. Return its id, and what ``create`` makes of the id.

    ``body`` has the ``name`` and the ``input_values``, which are the script's environment variables. If ``create``
    fails, the config is deleted.
    """
    declared = [{"name": name} for name in body["input_values"]]
    config = client.configs.create({"name": body["name"], "group": "script", "config": script, "inputs": declared})
    try:
        return config["id"], create(config["id"])
    except BaseException:
        client.configs.delete(config["id"])
        raise


def _stream(client: Client, id_: str, *, raw: bool) -> Deployment:
    """Print the output until the deployment ends."""
    seen: set[str] = set()

    def chunks() -> Iterator[LogChunk]:
        for page in client.deployments.follow(id_):
            for chunk in page["logs"]:
                seen.add(chunk["stream"])
                yield chunk

    LogPrinter("table", raw=raw).all(chunks())
    deployment = client.deployments.show(id_, patient=True)
    for stream in ("stdout", "stderr"):
        # An agent that sends no logs (Heat's own) delivers all output with its result.
        text = (deployment.get("output_values") or {}).get(f"deploy_{stream}")
        if stream not in seen and text:
            echo(text, nl=False, err=stream == "stderr", raw=raw)
    return deployment


def _print_result(server: Server, deployment: Deployment) -> None:
    """Print what the run changed, and the reason of a failure that its exit code and output do not explain."""
    if changes := summarize(deployment.get("changed"), deployment.get("changed_items") or 0):
        echo(f"stoker: {server['name']}: {changes}", err=True)
    if deployment["status"] != "COMPLETE" and not (deployment["status_reason"] or "").startswith(
        "deploy_status_code : "
    ):
        echo(f"stoker: {deployment_failure(deployment)}", err=True)


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


def _wait_for_start(client: Client, server: Server, deployment: Deployment, limit: Limit) -> None:
    """
    Return when the deployment has begun or ended. Print what it waits for.

    Raises TimedOut if the limit passes first.
    """
    if deployment["status"] != RUNNING:
        return
    reason, reported = deployment["status_reason"] or FOR_AGENT, ""
    for _ in attempts(limit.end, share=1):
        if reason not in (FOR_AGENT, reported):
            echo(f"stoker: {reason}; waiting {limit}", err=True)
            reported = reason
        page = client.deployments.log_page(deployment["id"], 0, wait=max(int(min(_LOOK, limit.left)), 1))
        if _shows_run(page) or _has_begun(client, deployment["id"]):
            return
        reason = page.get("status_reason") or FOR_AGENT
        if reason == FOR_AGENT and server["status"] == "ONLINE":
            reason = f"{server['name']} has not started the run: it is busy, or its agent has stopped"
    why = server["status"] if reason == FOR_AGENT else reason
    raise TimedOut(f"nothing ran on {server['name']} within {limit.seconds} s ({why}); the run is cancelled")


def _shows_run(page: LogPage) -> bool:
    return bool(page["logs"]) or page["status"] != RUNNING or bool(page.get("progress"))


def _has_begun(client: Client, id_: str) -> bool:
    """Whether an agent has received the run, according to the service."""
    runs = client.deployments.runs(id_)
    return bool(runs) and bool(runs[0].get("delivered_time") or runs[0].get("end_time"))
