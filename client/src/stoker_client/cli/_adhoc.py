"""``stoker run``: a temporary config and its deployment on one server, or its trigger on several."""

from __future__ import annotations

import math
import threading
import time
from collections import deque
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Any, TypeVar

from stoker_client import triggers
from stoker_client.cli._fold import print_groups
from stoker_client.cli._logs import LogPrinter
from stoker_client.cli._options import print_link
from stoker_client.cli._output import echo
from stoker_client.cli._runs import run_of, summarize, summarize_changes
from stoker_client.cli._session import TIMED_OUT, Session
from stoker_client.cli._wait import FOR_AGENT, deployment_failure, describe_failure, trigger_failure
from stoker_client.client import Client, connect
from stoker_client.deployments import RUNNING
from stoker_client.errors import ClientError, TimedOut
from stoker_client.results import exit_code
from stoker_client.shapes import Deployment, LogChunk, LogPage, Server
from stoker_client.triggers import COMPLETE, Watch
from stoker_client.updates import attempts

Started = TypeVar("Started")
#: Seconds that the service may delay an answer about a run that has not begun.
_LOOK = 5


def run_one(
    session: Session, server: Server, script: str, body: Mapping[str, Any], limit: Limit, *, keep: bool, link: bool,
    raw: bool,
) -> int:  # fmt: skip
    """
    Run ``script`` on a server, print the output and return the exit code.

    ``body`` has members of the deployment. Raises TimedOut if the run has not begun within ``limit``. ``keep`` keeps
    the deployment and the config; ``link`` prints the URL of the console's page.
    """
    client = session.client
    config_id, run = start_script(client, script, body, lambda config_id: client.deployments.create({
        **body, "config_id": config_id, "server_id": server["id"], "action": "CREATE",
        "signal_transport": "STOKER_SIGNAL",
    }))  # fmt: skip
    id_ = run["id"]
    if link:
        print_link(session, "runs", id_)

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
        for chunk in client.deployments.run_logs(id_):
            seen.add(chunk["stream"])
            yield chunk

    printer = LogPrinter("table", raw=raw)
    printer.all(chunks())
    deployment = client.deployments.show(id_, patient=True)
    printer.all(chunk for chunk in _result_output(deployment) if chunk["stream"] not in seen)
    return deployment


def _result_output(result: Mapping[str, Any], **whose: Any) -> Iterator[LogChunk]:
    """Yield the output in the result of an agent that sends no logs, such as Heat's. ``whose``: members of chunks."""
    for stream in ("stdout", "stderr"):
        if text := (result.get("output_values") or {}).get(f"deploy_{stream}"):
            # type ignored: mypy does not join TypedDicts
            yield {"seq": 0, "stream": stream, "data": str(text), **whose}  # type: ignore[typeddict-item]


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


def run_several(
    session: Session, servers: Sequence[Server], script: str, body: Mapping[str, Any], limit: Limit, *, keep: bool,
    fold: bool, link: bool, raw: bool,
) -> int:  # fmt: skip
    """
    Run ``script`` on ``servers`` and print the output; with ``fold`` at the end, once for servers with equal output.

    Return the highest exit code, or TIMED_OUT if all runs that did not succeed have not begun within ``limit``.
    ``keep`` keeps the trigger and the config; ``link`` prints the URL of the console's page.
    """
    client = session.client
    ids = [server["id"] for server in servers]
    config_id, trigger = start_script(client, script, body, lambda config_id: client.triggers.create(
        triggers.body(config_id=config_id, servers=ids, **body)
    ))  # fmt: skip
    id_ = trigger["id"]
    if link:
        print_link(session, "triggers", id_)
    overdue: set[str] = set()
    with naming_remains("trigger", id_, config_id, show="show"):
        watch = _follow(session, id_, limit, overdue, fold=fold, raw=raw)
        if fold:
            print_groups(*client.triggers.output_groups(id_), shows_diff=False)
    _report(client, watch)
    if keep:
        echo(f"stoker: kept: trigger {id_}, config {config_id}", err=True)
    else:
        client.triggers.delete(id_)
        client.configs.delete(config_id)
    unsuccessful = {target.get("deployment_id") for target in watch.targets if target["status"] != COMPLETE}
    return TIMED_OUT if unsuccessful and unsuccessful <= overdue else watch.exit_code


def _follow(session: Session, id_: str, limit: Limit, overdue: set[str], *, fold: bool, raw: bool) -> Watch:
    """
    Wait until the trigger ends, and print the output meanwhile unless ``fold``.

    Adds the deployments that did not begin in time to ``overdue``.
    """
    watch = Watch(session.client.triggers, id_)
    servers_with_output: set[str] = set()

    def chunks() -> Iterator[LogChunk]:
        for _, log in watch.changes():
            if log is not None:
                servers_with_output.add(log["server_id"])
                yield log
        for target in watch.targets:
            if target["server_id"] not in servers_with_output:
                whose = {"server_id": target["server_id"], "server_name": target.get("server_name")}
                yield from _result_output(run_of(target), **whose)

    timer = None
    if limit.seconds:
        timer = threading.Timer(limit.left, _cancel_waiting, (session.cloud, id_, limit.seconds, overdue))
        timer.daemon = True
        timer.start()
    try:
        if fold:
            deque(chunks(), maxlen=0)
        else:
            LogPrinter("table", name_of=watch.labels.of, raw=raw).all(chunks())
    finally:
        if timer is not None:
            timer.cancel()
    return watch


def _cancel_waiting(cloud: str | None, id_: str, seconds: int, overdue: set[str]) -> None:
    """
    Cancel, in a thread, the runs that no agent has begun, and add their deployments to ``overdue``.

    Runs that wait for their turn are not cancelled.
    """
    try:
        with connect(cloud) as client:
            for target in client.triggers.show(id_).get("targets") or []:
                run = run_of(target)
                if target["status"] == "IN_PROGRESS" and not (run.get("delivered_time") or run.get("end_time")):
                    name = target.get("server_name") or target["server_id"]
                    echo(f"stoker: nothing ran on {name} within {seconds} s; its run is cancelled", err=True)
                    deployment_id = str(target.get("deployment_id"))
                    overdue.add(deployment_id)  # first, because the trigger may end before the cancellation returns
                    client.deployments.cancel(deployment_id, force=True)
    except ClientError as problem:
        echo(f"stoker: {problem}", err=True)


def _report(client: Client, watch: Watch) -> None:
    for target in watch.targets:
        if changes := summarize_changes(run_of(target)):
            echo(f"stoker: {watch.labels.of(target)}: {changes}", err=True)
        if target["status"] == "FAILED":
            echo(f"stoker: {describe_failure(client, watch, target)}", err=True)
    if line := trigger_failure(watch):
        echo(f"stoker: {line}", err=True)
