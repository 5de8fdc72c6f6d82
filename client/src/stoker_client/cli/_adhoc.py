"""``stoker run``: a temporary config and its trigger on servers."""

from __future__ import annotations

import math
import threading
import time
from collections import deque
from collections.abc import Collection, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Any

from stoker_client import triggers
from stoker_client.cli._fold import fold_names, print_groups
from stoker_client.cli._logs import LogPrinter
from stoker_client.cli._options import print_link
from stoker_client.cli._output import echo
from stoker_client.cli._runs import run_of, summarize_changes
from stoker_client.cli._session import TIMED_OUT, Session
from stoker_client.cli._wait import FOR_AGENT, describe_failure, trigger_failure
from stoker_client.client import Client, connect
from stoker_client.errors import ClientError
from stoker_client.shapes import Server, Target
from stoker_client.triggers import COMPLETE, Watch

#: Seconds after which it is reported that a run has not begun.
_SOON = 3.0


def run_script(
    session: Session, servers: Sequence[Server], script: str, body: Mapping[str, Any], limit: Limit, *, keep: bool,
    fold: bool, link: bool, raw: bool,
) -> int:  # fmt: skip
    """
    Run ``script`` on ``servers`` and print the output; with ``fold`` at the end, once for servers with equal output.

    Return the highest exit code, or TIMED_OUT if all runs that did not succeed have not begun within ``limit``.
    ``body`` has members of the trigger. ``keep`` keeps the trigger and the config; ``link`` prints the URL of the
    console's page.
    """
    client = session.client
    config_id, id_ = _start(client, servers, script, body)
    if link:
        print_link(session, "triggers", id_)
    overdue: set[str] = set()
    with _naming_remains(id_, config_id):
        with _limited(session, id_, servers, limit, overdue):
            watch = _follow(client, id_, is_several=len(servers) > 1, fold=fold, raw=raw)
        if fold:
            print_groups(*client.triggers.output_groups(id_), shows_diff=False)
    _report(client, watch, overdue)
    if keep:
        echo(f"stoker: kept: trigger {id_}, config {config_id}", err=True)
    else:
        client.triggers.delete(id_)
        client.configs.delete(config_id)
    unsuccessful = {target.get("deployment_id") for target in watch.targets if target["status"] != COMPLETE}
    return TIMED_OUT if unsuccessful and unsuccessful <= overdue else watch.exit_code


def _start(client: Client, servers: Sequence[Server], script: str, body: Mapping[str, Any]) -> tuple[str, str]:
    """
    Create the config and the trigger, and return their ids. If the trigger is refused, the config is deleted.

    The ``input_values`` of ``body`` are the script's environment variables.
    """
    declared = [{"name": name} for name in body["input_values"]]
    config = client.configs.create({"name": body["name"], "group": "script", "config": script, "inputs": declared})
    ids = [server["id"] for server in servers]
    try:
        return config["id"], client.triggers.create(triggers.body(config_id=config["id"], servers=ids, **body))["id"]
    except BaseException:
        client.configs.delete(config["id"])
        raise


def _follow(client: Client, id_: str, *, is_several: bool, fold: bool, raw: bool) -> Watch:
    """Wait until the trigger ends, and print the output meanwhile unless ``fold``."""
    watch = Watch(client.triggers, id_)
    output = watch.logs()
    if fold:
        deque(output, maxlen=0)
    else:
        LogPrinter("table", name_of=watch.labels.of if is_several else None, raw=raw).all(output)
    return watch


@contextmanager
def _naming_remains(id_: str, config_id: str) -> Iterator[None]:
    """After an error, print that the trigger continues, and which commands show, end and remove it."""
    try:
        yield
    except BaseException:
        echo(
            f"stoker: trigger {id_} continues: `stoker trigger show --follow {id_}` shows it, `stoker trigger cancel"
            f" {id_}` ends it, `stoker trigger delete {id_}` and `stoker config delete {config_id}` remove it",
            err=True,
        )
        raise


@dataclass(frozen=True)
class Limit:
    """The time within which a run must begin, in seconds; 0 means no limit."""

    seconds: int
    _start: float = field(default_factory=time.monotonic)

    @property
    def left(self) -> float:
        """The remaining seconds, at least 0."""
        return max(self._start + (self.seconds or math.inf) - time.monotonic(), 0)

    def __str__(self) -> str:
        return f"for {self.seconds} s at most (--wait-timeout)" if self.seconds else "as long as it takes"


def report_absence(servers: Sequence[Server], limit: Limit) -> None:
    """Print which servers are not online, and that the run waits for them."""
    for server in servers:
        if server["status"] != "ONLINE":
            seen = f" (last seen {server['last_seen']})" if server.get("last_seen") else ""
            status = server["status"]
            echo(f"stoker: {server['name']} is {status}{seen}: waiting for its agent, {limit}", err=True)


@contextmanager
def _limited(session: Session, id_: str, servers: Sequence[Server], limit: Limit, overdue: set[str]) -> Iterator[None]:
    """
    Meanwhile, report in a thread which runs have not begun, and cancel them when ``limit`` has passed.

    Adds the deployments of cancelled runs to ``overdue``.
    """
    ended = threading.Event()
    statuses = {server["id"]: server["status"] for server in servers}

    def watch() -> None:
        try:
            if not ended.wait(min(_SOON, limit.left / 2)):
                with connect(session.cloud) as client:  # another thread cannot use the session's connection
                    _report_waiting(_find_waiting(client, id_, statuses), limit)
            if not ended.wait(min(limit.left, threading.TIMEOUT_MAX)):
                with connect(session.cloud) as client:
                    for target, reason in _find_waiting(client, id_, statuses):
                        _cancel_waiting(client, target, reason, limit, overdue)
        except ClientError as problem:
            echo(f"stoker: {problem}", err=True)

    threading.Thread(target=watch, daemon=True).start()
    try:
        yield
    finally:
        ended.set()


def _find_waiting(client: Client, id_: str, statuses: Mapping[str, str]) -> Iterator[tuple[Target, str]]:
    """
    Yield the targets that no agent has begun, each with the reason. Those that wait for their turn are not among them.

    ``statuses`` are those of the servers when the command began.
    """
    for target in client.triggers.show(id_).get("targets") or []:
        run = run_of(target)
        if target["status"] != "IN_PROGRESS" or run.get("delivered_time") or run.get("end_time"):
            continue
        reason = client.deployments.show(str(target.get("deployment_id")))["status_reason"] or FOR_AGENT
        if reason == FOR_AGENT:
            status = statuses[target["server_id"]]
            reason = "the agent is busy or has stopped" if status == "ONLINE" else status
        yield target, reason


def _report_waiting(waiting: Iterator[tuple[Target, str]], limit: Limit) -> None:
    """Print the reasons, each with its servers, without those that ``report_absence`` has printed."""
    names: dict[str, list[str]] = {}
    for target, reason in waiting:
        if not reason.isupper():
            names.setdefault(reason, []).append(target.get("server_name") or target["server_id"])
    for reason, servers in names.items():
        echo(f"stoker: not started on {fold_names(servers)}: {reason}; waiting {limit}", err=True)


def _cancel_waiting(client: Client, target: Target, reason: str, limit: Limit, overdue: set[str]) -> None:
    name, deployment_id = target.get("server_name") or target["server_id"], str(target.get("deployment_id"))
    echo(f"stoker: nothing ran on {name} within {limit.seconds} s ({reason}); its run is cancelled", err=True)
    overdue.add(deployment_id)  # first, because the trigger may end before the cancellation returns
    client.deployments.cancel(deployment_id, force=True)


def _report(client: Client, watch: Watch, overdue: Collection[str]) -> None:
    """Print what the runs changed, and the failures that a script's output and exit code do not explain."""
    is_several = len(watch.targets) > 1
    for target in watch.targets:
        if changes := summarize_changes(run_of(target)):
            echo(f"stoker: {watch.labels.of(target)}: {changes}", err=True)
        is_explained = target.get("deployment_id") in overdue or (not is_several and _has_code(target))
        if target["status"] not in ((COMPLETE, "CANCELLED") if is_several else (COMPLETE,)) and not is_explained:
            echo(f"stoker: {describe_failure(client, watch, target)}", err=True)
    if is_several and (line := trigger_failure(watch)):
        echo(f"stoker: {line}", err=True)


def _has_code(target: Target) -> bool:
    """Whether the run failed because of its script's exit code."""
    return (target.get("status_reason") or "").startswith("deploy_status_code : ")
