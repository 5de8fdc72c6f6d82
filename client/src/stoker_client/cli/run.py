"""Run a command or a script on one server or on several, now.

The command prints the output while the script writes it and exits with the script's exit code. With several servers,
each line begins with the server's name, and the exit code is the highest. One argument after -- is a line for the
shell; several are a program and its arguments. A pattern stands for all servers whose names match.

\b
  stoker run web1 -- uname -a
  stoker run web1 web2 -- 'df -h | sort'
  stoker run 'web*' -- uptime
  stoker run --label role=web -i tier=web -f setup.sh
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import click

from stoker_client import adhoc
from stoker_client.cli._changes import summarize
from stoker_client.cli._log_output import LogPrinter
from stoker_client.cli._options import canary_option
from stoker_client.cli._output import echo, raw_option
from stoker_client.cli._servers import choose_servers, selector_option
from stoker_client.cli._session import Session
from stoker_client.cli._values import pair, read_text
from stoker_client.cli._wait import Limit, failure_line, naming_remains, report_absence, wait_for_start
from stoker_client.client import Client
from stoker_client.errors import TimedOut
from stoker_client.shapes import Deployment, LogChunk, Server

STREAMS = ("stdout", "stderr")
_COMMAND = "stoker.run.command"


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
@click.option("--max-concurrent", type=click.IntRange(min=1), metavar="N", help="Maximum number of servers at a time.")
@canary_option("Begin on this number, or percentage, of the servers; on the others when these have succeeded.")
@click.option("--name", default="run", show_default=True, help="A name for the config and the deployment.")
@click.option("--keep", is_flag=True, help="Keep the config and the deployment.")
@raw_option
@click.pass_context
def command(
    ctx: click.Context,
    /,
    *,
    servers: Sequence[str],
    selectors: Sequence[str],
    file: str | None,
    inputs: Sequence[tuple[str, str]],
    timeout: int | None,
    wait_timeout: int,
    max_concurrent: int | None,
    canary: int | str | None,
    name: str,
    keep: bool,
    raw: bool,
) -> None:  # fmt: skip
    refs, words = _split(servers, ctx.meta.get(_COMMAND), selectors, file)
    script = _script(words, file)
    session = ctx.find_object(Session)
    assert session is not None
    client = session.client
    targets = choose_servers(client, refs, selectors)
    limit = Limit(wait_timeout)
    report_absence(targets, limit)
    if len(targets) > 1:
        from stoker_client.cli._run_several import run_several

        options = {"timeout": timeout, "max_concurrent": max_concurrent, "canary": canary}
        body = {"input_values": dict(inputs), "name": name, **options}
        ctx.exit(run_several(session, targets, script, body, limit, keep=keep, raw=raw))
    ctx.exit(_run_one(client, targets[0], adhoc.start(
        client, targets[0]["id"], script, name=name, inputs=dict(inputs), timeout=timeout
    ), limit, keep=keep, raw=raw))  # fmt: skip


def _split(
    servers: Sequence[str], words: Sequence[str] | None, selectors: Sequence[str], file: str | None
) -> tuple[Sequence[str], Sequence[str]]:
    """Return servers and command. Without ``--``, only the first word can be a server."""
    if words is None and not file and not selectors:
        servers, words = servers[:1], servers[1:]
    if bool(servers) == bool(selectors):
        raise click.UsageError("name either servers or --label")
    return servers, words or ()


def _script(command_line: Sequence[str], file: str | None) -> str:
    if bool(command_line) == bool(file):
        raise click.UsageError("give either a command after -- or a script with --file")
    return adhoc.with_shebang(read_text(file, "--file")) if file else adhoc.script_of(command_line)


def _run_one(client: Client, server: Server, run: adhoc.AdHoc, limit: Limit, *, keep: bool, raw: bool) -> int:
    try:
        with naming_remains("deployment", run.id, run.config_id, show="logs", where=f" on {server['name']}"):
            wait_for_start(client, server, run.deployment, limit)
            deployment = _stream(client, run.id, raw=raw)
    except TimedOut:
        client.deployments.cancel(run.id, force=True)
        run.delete()
        raise
    _print_result(server, deployment)
    if keep:
        echo(f"stoker: kept: deployment {run.id}, config {run.config_id}", err=True)
    else:
        run.delete()
    return adhoc.exit_code(deployment)


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
    for stream in STREAMS:
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
        echo(f"stoker: {failure_line(deployment)}", err=True)
