"""Run a command or a script on a server, now.

Its output comes here as it is written, and its exit code is ours. One argument is a line for the shell; several are
a program and its arguments.

\b
  stoker run web1 -- uname -a
  stoker run web1 -- 'df -h | sort'
  stoker run web1 -i tier=web -f setup.sh
"""

from collections.abc import Iterator, Sequence

import click

from stoker_client import adhoc
from stoker_client.cli._log_output import LogPrinter
from stoker_client.cli._session import Session
from stoker_client.cli._values import pair, read_text
from stoker_client.client import Client
from stoker_client.shapes import Deployment, LogChunk

STREAMS = ("stdout", "stderr")


@click.command()
@click.argument("server")
@click.argument("command_line", nargs=-1, type=click.UNPROCESSED, metavar="-- COMMAND...")
@click.option("-f", "--file", "file", metavar="FILE", help="A script to run instead of a command; - is standard input.")
@click.option("-i", "--input", "inputs", type=pair, multiple=True, metavar="NAME=VALUE", help="A variable.")
@click.option("--timeout", type=click.IntRange(min=1), metavar="SECONDS", help="Kill it after this time.")
@click.option("--name", default="run", show_default=True, help="A name for the config and the deployment.")
@click.option("--keep", is_flag=True, help="Leave the config and the deployment for a later look.")
@click.pass_context
def command(
    ctx: click.Context,
    /,
    *,
    server: str,
    command_line: Sequence[str],
    file: str | None,
    inputs: Sequence[tuple[str, str]],
    timeout: int | None,
    name: str,
    keep: bool,
) -> None:
    script = _script(command_line, file)
    session = ctx.find_object(Session)
    assert session is not None
    client = session.client
    run = adhoc.start(client, _server_id(client, server), script, name=name, inputs=dict(inputs), timeout=timeout)
    try:
        done = _stream(client, run.id)
    except BaseException:
        _tell_what_stays(run, server)
        raise
    _tell_failure(done)
    if keep:
        click.echo(f"stoker: kept: deployment {run.id}, config {run.config_id}", err=True)
    else:
        run.delete()
    ctx.exit(adhoc.exit_code(done))


def _script(command_line: Sequence[str], file: str | None) -> str:
    if bool(command_line) == bool(file):
        raise click.UsageError("give either a command after -- or a script with --file")
    return adhoc.with_shebang(read_text(file, "--file")) if file else adhoc.script_of(command_line)


def _server_id(client: Client, ref: str) -> str:
    """The server's id; says so when the run will have to wait for its agent."""
    server = client.servers.show(ref)
    if server["status"] != "ONLINE":
        click.echo(f"stoker: {server['name']} is {server['status']}: it will run when its agent is there", err=True)
    return server["id"]


def _stream(client: Client, id_: str) -> Deployment:
    """Pass on what it writes until it is over."""
    seen: set[str] = set()

    def chunks() -> Iterator[LogChunk]:
        for page in client.deployments.follow(id_):
            for chunk in page["logs"]:
                seen.add(chunk["stream"])
                yield chunk

    LogPrinter("table").all(chunks())
    done = client.deployments.show(id_, patient=True)
    for stream in STREAMS:
        # An agent that sends no logs (Heat's own) brings everything with its result.
        text = (done.get("output_values") or {}).get(f"deploy_{stream}")
        if stream not in seen and text:
            click.echo(text, nl=False, err=stream == "stderr")
    return done


def _tell_failure(done: Deployment) -> None:
    """Give the reason for a failure when the exit code and the script's own words cannot."""
    reason = done["status_reason"] or "no reason given"
    if done["status"] != "COMPLETE" and not reason.startswith("deploy_status_code : "):
        click.echo(f"stoker: failed: {reason}", err=True)


def _tell_what_stays(run: adhoc.AdHoc, server: str) -> None:
    click.echo(
        f"stoker: deployment {run.id} goes on on {server}: `stoker deployment logs --follow {run.id}` shows it, "
        f"`stoker deployment cancel {run.id}` ends it, "
        f"`stoker deployment delete {run.id}` and `stoker config delete {run.config_id}` remove it",
        err=True,
    )
