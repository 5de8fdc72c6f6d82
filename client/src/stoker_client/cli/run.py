"""The command ``stoker run``: a temporary config and its trigger on servers."""

from __future__ import annotations

import math
import shlex
import threading
import time
from collections import deque
from collections.abc import Collection, Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import Any

import click

from stoker_client import triggers
from stoker_client.cli._fold import fold_names, print_groups
from stoker_client.cli._logs import LogPrinter
from stoker_client.cli._options import (
    choose_servers,
    link_option,
    pair,
    print_link,
    read_text,
    rollout_options,
    selector_option,
)
from stoker_client.cli._output import echo, raw_option
from stoker_client.cli._runs import run_of, summarize_changes
from stoker_client.cli._session import TIMED_OUT, Session
from stoker_client.cli._wait import FOR_AGENT, describe_failure, trigger_failure
from stoker_client.client import Client, connect
from stoker_client.deployments import server_name_of
from stoker_client.errors import ClientError
from stoker_client.shapes import Server, Target
from stoker_client.triggers import COMPLETE, Watch

_COMMAND = "stoker.run.command"
_SHEBANG = "#!/bin/sh\n"
#: Seconds after which it is reported that a run has not begun.
_SOON = 3.0


class RunCommand(click.Command):
    """Treats the words after the first ``--`` as the command to run, and the words before it as servers and options."""

    def parse_args(self, ctx: click.Context, args: list[str]) -> list[str]:
        """Store the words after ``--`` in the context."""
        if "--" in args:
            at = args.index("--")
            ctx.meta[_COMMAND] = tuple(args[at + 1 :])
            args = args[:at]
        return super().parse_args(ctx, args)

    def collect_usage_pieces(self, ctx: click.Context) -> list[str]:
        """Return the usage, with the command at the end."""
        return [*super().collect_usage_pieces(ctx), "-- COMMAND..."]


@click.command(cls=RunCommand)
@click.argument("servers", nargs=-1, metavar="[SERVER]...")
@selector_option("Run on the servers that SELECTOR selects.")
@click.option("-f", "--file", "file", metavar="FILE", help="A script to run instead of a command; - is standard input.")
@click.option("-i", "--input", "inputs", type=pair, multiple=True, metavar="NAME=VALUE", help="A variable.")
@click.option("--timeout", type=click.IntRange(min=1), metavar="SECONDS", help="Kill the script after this time.")
@click.option(
    "--wait-timeout",
    type=click.IntRange(min=0),
    default=60,
    show_default=True,
    metavar="SECONDS",
    help="Cancel runs that have not started by then, because the server is offline, busy or outside its maintenance"
    " window; 0: no limit.",
)
@rollout_options
@click.option("--name", default="run", show_default=True, help="A name for the config and the trigger.")
@click.option("--keep", is_flag=True, help="Keep the config and the trigger.")
@click.option("--fold", is_flag=True, help="At the end, print the output once for all servers with equal output.")
@link_option
@raw_option
@click.pass_obj
def run(
    session: Session,
    /,
    *,
    servers: Sequence[str],
    selector: str | None,
    file: str | None,
    inputs: Sequence[tuple[str, str]],
    timeout: int | None,
    wait_timeout: int,
    name: str,
    keep: bool,
    fold: bool,
    link: bool,
    raw: bool,
    **rollout: Any,
) -> int:
    """Run a command or a script on one server or on several, now.

    The command prints the output while the script writes it and exits with the script's exit code. With several
    servers, each line begins with the server's name, and the exit code is the highest. One argument after -- is a line
    for the shell; several are a program and its arguments. A pattern stands for all servers whose names match.

    \b
      stoker run web1 -- uname -a
      stoker run web1 web2 -- 'df -h | sort'
      stoker run 'web*' --fold -- uname -r
      stoker run --label role=web -i tier=web -f setup.sh
    """
    words = click.get_current_context().meta.get(_COMMAND)
    if words is None and not file and not selector:  # without --, only the first word can be a server
        servers, words = servers[:1], servers[1:]
    script = _script(words or (), file)
    targets = choose_servers(session, servers, selector)
    client = session.client
    limit = _StartLimit(session, targets, wait_timeout)
    limit.report_absence()
    body = {"name": name, "input_values": dict(inputs), "timeout": timeout, **rollout}
    config_id, id_ = _start(client, targets, script, body)
    if link:
        print_link(session, "triggers", id_)
    with _naming_remains(id_, config_id):
        with limit.applied(id_):
            watch = _follow(client, id_, is_several=len(targets) > 1, fold=fold, raw=raw)
        if fold:
            print_groups(*client.triggers.output_groups(id_), shows_diff=False)
    _report(client, watch, limit.overdue)
    _clean_up(client, id_, config_id, keep=keep)
    return _exit_code(watch, limit.overdue)


def _script(command: Sequence[str], file: str | None) -> str:
    """Return the script: one word is a line of shell, several are a program and its arguments."""
    if bool(command) == bool(file):
        raise click.UsageError("give either a command after -- or a script with --file")
    if not file:
        return f"{_SHEBANG}{command[0] if len(command) == 1 else shlex.join(command)}\n"
    script = read_text(file, "--file")
    return script if script.startswith("#!") else _SHEBANG + script


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


class _StartLimit:
    """
    The time within which runs must begin: ``seconds``, or 0 for no limit.

    While the trigger is followed, a thread reports which runs have not begun, and cancels them after the limit.
    """

    def __init__(self, session: Session, servers: Sequence[Server], seconds: int) -> None:
        self._session = session
        self._servers = servers
        self._seconds = seconds
        self._end = time.monotonic() + (seconds or math.inf)
        self._is_over = threading.Event()
        #: The deployments of the cancelled runs.
        self.overdue: set[str] = set()

    def __str__(self) -> str:
        return f"for {self._seconds} s at most (--wait-timeout)" if self._seconds else "as long as it takes"

    def report_absence(self) -> None:
        """Print which servers are not online, and that the run waits for them."""
        for server in self._servers:
            if server["status"] != "ONLINE":
                seen = f" (last seen {server['last_seen']})" if server.get("last_seen") else ""
                echo(f"stoker: {server['name']} is {server['status']}{seen}: waiting for its agent, {self}", err=True)

    @contextmanager
    def applied(self, id_: str) -> Iterator[None]:
        """Meanwhile, apply the limit to the runs of a trigger."""
        threading.Thread(target=self._apply, args=(id_,), daemon=True).start()
        try:
            yield
        finally:
            self._is_over.set()

    def _apply(self, id_: str) -> None:
        try:
            if not self._is_over.wait(min(_SOON, self._left() / 2)):
                with connect(self._session.cloud) as client:  # another thread cannot use the session's connection
                    self._report(client, id_)
            if not self._is_over.wait(min(self._left(), threading.TIMEOUT_MAX)):
                with connect(self._session.cloud) as client:
                    self._cancel(client, id_)
        except ClientError as problem:
            echo(f"stoker: {problem}", err=True)

    def _left(self) -> float:
        return max(self._end - time.monotonic(), 0)

    def _report(self, client: Client, id_: str) -> None:
        """Print why runs have not begun, each reason with its servers, without those that ``report_absence`` prints."""
        names: dict[str, list[str]] = {}
        for target, reason in self._find_waiting(client, id_):
            if not reason.isupper():
                names.setdefault(reason, []).append(server_name_of(target))
        for reason, servers in names.items():
            echo(f"stoker: not started on {fold_names(servers)}: {reason}; waiting {self}", err=True)

    def _cancel(self, client: Client, id_: str) -> None:
        for target, reason in self._find_waiting(client, id_):
            deployment_id, words = str(target.get("deployment_id")), f"within {self._seconds} s ({reason})"
            echo(f"stoker: nothing ran on {server_name_of(target)} {words}; its run is cancelled", err=True)
            self.overdue.add(deployment_id)  # first, because the trigger may end before the cancellation returns
            client.deployments.cancel(deployment_id, force=True)

    def _find_waiting(self, client: Client, id_: str) -> Iterator[tuple[Target, str]]:
        """Yield the targets that no agent has begun, each with the reason, without those that wait for their turn."""
        statuses = {server["id"]: server["status"] for server in self._servers}  # when the command began
        for target in client.triggers.show(id_).get("targets") or []:
            run = run_of(target)
            if target["status"] != "IN_PROGRESS" or run.get("delivered_time") or run.get("end_time"):
                continue
            reason = run.get("status_reason") or FOR_AGENT
            if reason == FOR_AGENT:
                status = statuses[target["server_id"]]
                reason = "the agent is busy or has stopped" if status == "ONLINE" else status
            yield target, reason


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


def _clean_up(client: Client, id_: str, config_id: str, *, keep: bool) -> None:
    """Delete the trigger and the config, or print their ids with ``keep``."""
    if keep:
        echo(f"stoker: kept: trigger {id_}, config {config_id}", err=True)
    else:
        client.triggers.delete(id_)
        client.configs.delete(config_id)


def _exit_code(watch: Watch, overdue: Collection[str]) -> int:
    """Return the highest exit code, or TIMED_OUT if all runs that did not succeed have not begun within the limit."""
    unsuccessful = {target.get("deployment_id") for target in watch.targets if target["status"] != COMPLETE}
    return TIMED_OUT if unsuccessful and unsuccessful.issubset(overdue) else watch.exit_code
