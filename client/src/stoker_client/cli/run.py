"""The command ``stoker run``: a temporary config and its trigger on servers."""

from __future__ import annotations

import shlex
from collections.abc import Sequence
from typing import Any

import click

from stoker_client.cli._adhoc import Limit, report_absence, run_script
from stoker_client.cli._options import (
    choose_servers,
    link_option,
    pair,
    read_text,
    rollout_options,
    selector_option,
)
from stoker_client.cli._output import raw_option
from stoker_client.cli._session import Session

_COMMAND = "stoker.run.command"
_SHEBANG = "#!/bin/sh\n"


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
    refs, words = _split(servers, click.get_current_context().meta.get(_COMMAND), selector, file)
    script = _script(words, file)
    targets = choose_servers(session.client, refs, selector)
    limit = Limit(wait_timeout)
    report_absence(targets, limit)
    body = {"name": name, "input_values": dict(inputs), "timeout": timeout, **rollout}
    return run_script(session, targets, script, body, limit, keep=keep, fold=fold, link=link, raw=raw)


def _split(
    servers: Sequence[str], words: Sequence[str] | None, selector: str | None, file: str | None
) -> tuple[Sequence[str], Sequence[str]]:
    """Return servers and command. Without ``--``, only the first word can be a server."""
    if words is None and not file and not selector:
        servers, words = servers[:1], servers[1:]
    if bool(servers) == bool(selector):
        raise click.UsageError("give either servers or --label")
    return servers, words or ()


def _script(command: Sequence[str], file: str | None) -> str:
    """Return the script: one word is a line of shell, several are a program and its arguments."""
    if bool(command) == bool(file):
        raise click.UsageError("give either a command after -- or a script with --file")
    if not file:
        return f"{_SHEBANG}{command[0] if len(command) == 1 else shlex.join(command)}\n"
    script = read_text(file, "--file")
    return script if script.startswith("#!") else _SHEBANG + script
