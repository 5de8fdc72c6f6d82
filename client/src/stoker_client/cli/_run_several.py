"""``stoker run`` on several servers: a trigger of a temporary config."""

from __future__ import annotations

import threading
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from stoker_client import triggers
from stoker_client.cli._logs import LogPrinter
from stoker_client.cli._output import echo
from stoker_client.cli._run_one import Limit, naming_remains, start_script
from stoker_client.cli._runs import run_of, summarize_changes
from stoker_client.cli._session import TIMED_OUT, Session
from stoker_client.cli._wait import describe_failure, trigger_failure
from stoker_client.client import Client, connect
from stoker_client.errors import ClientError
from stoker_client.shapes import LogChunk, Server
from stoker_client.triggers import COMPLETE, Watch


def run_several(
    session: Session, servers: Sequence[Server], script: str, body: Mapping[str, Any], limit: Limit, *, keep: bool,
    raw: bool,
) -> int:  # fmt: skip
    """
    Run ``script`` on ``servers`` and print the output.

    Return the highest exit code, or TIMED_OUT if all runs that did not succeed have not begun within ``limit``.
    ``keep`` keeps the trigger and the config.
    """
    client = session.client
    ids = [server["id"] for server in servers]
    config_id, trigger = start_script(client, script, body, lambda config_id: client.triggers.create(
        triggers.body(config_id=config_id, servers=ids, **body)
    ))  # fmt: skip
    id_ = trigger["id"]
    overdue: set[str] = set()
    with naming_remains("trigger", id_, config_id, show="show"):
        watch = _follow(session, id_, limit, overdue, raw=raw)
    _report(client, watch)
    if keep:
        echo(f"stoker: kept: trigger {id_}, config {config_id}", err=True)
    else:
        client.triggers.delete(id_)
        client.configs.delete(config_id)
    unsuccessful = {target.get("deployment_id") for target in watch.targets if target["status"] != COMPLETE}
    return TIMED_OUT if unsuccessful and unsuccessful <= overdue else watch.exit_code


def _follow(session: Session, id_: str, limit: Limit, overdue: set[str], *, raw: bool) -> Watch:
    """Print the output until the trigger ends. Adds the deployments that did not begin in time to ``overdue``."""
    watch = Watch(session.client.triggers, id_)
    servers_with_output: set[str] = set()

    def chunks() -> Iterator[LogChunk]:
        for _, log in watch.changes():
            if log is not None:
                servers_with_output.add(log["server_id"])
                yield log
        yield from _results(watch, servers_with_output)

    timer = None
    if limit.seconds:
        timer = threading.Timer(limit.left, _cancel_waiting, (session.cloud, id_, limit.seconds, overdue))
        timer.daemon = True
        timer.start()
    try:
        LogPrinter("table", name_of=watch.labels.of, raw=raw).all(chunks())
    finally:
        if timer is not None:
            timer.cancel()
    return watch


def _results(watch: Watch, servers_with_output: set[str]) -> Iterator[LogChunk]:
    """Yield the output from the results of agents that send no logs, such as Heat's."""
    for target in watch.targets:
        values = run_of(target).get("output_values") or {}
        for stream in ("stdout", "stderr"):
            text = values.get(f"deploy_{stream}")
            if text and target["server_id"] not in servers_with_output:
                named = {"server_id": target["server_id"], "server_name": target.get("server_name")}
                # type ignored: mypy does not join TypedDicts
                yield {"seq": 0, "stream": stream, "data": str(text), **named}  # type: ignore[typeddict-item]


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
