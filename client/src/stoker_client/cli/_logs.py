"""The output of runs: the printer for it, and the command ``stoker deployment logs``."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from datetime import UTC, datetime
from functools import partial
from typing import cast

import click

from stoker_client.cli._options import parse_duration
from stoker_client.cli._output import data_option, echo, emit_bytes, emit_data, printable, raw_option
from stoker_client.cli._session import Session
from stoker_client.deployments import Deployments
from stoker_client.errors import NotFound
from stoker_client.results import Lines, last_lines, unseen
from stoker_client.shapes import LogChunk, Run
from stoker_client.terminal import split_lines
from stoker_client.triggers import TriggerLog

stream_option = click.option("--stream", type=click.Choice(["stdout", "stderr"]), help="Only this stream.")


class LogPrinter:
    """
    Prints log chunks.

    With ``name_of``, prints complete lines after the name of the run's target; with ``timestamps``, after the time.
    With ``raw``, a terminal also receives the scripts' control sequences. ``is_partial``: the chunks begin anywhere.
    """

    def __init__(
        self,
        form: str,
        *,
        name_of: Callable[[TriggerLog], str] | None = None,
        raw: bool = False,
        timestamps: bool = False,
        is_partial: bool = False,
    ) -> None:
        self._form = form
        self._name_of = name_of
        self._raw = raw
        self._timestamps = timestamps
        self._is_partial = is_partial

    def all(self, chunks: Iterable[LogChunk]) -> None:
        """Print ``chunks`` as they arrive, and incomplete lines at the end."""
        if self._form != "table":
            for chunk in chunks:
                emit_data(self._form, chunk, stream=True)
            return
        lines = Lines(split_lines)
        try:
            for chunk, missing in unseen(chunks, is_partial=self._is_partial):
                name = self._name(chunk)
                if missing:
                    whose = f" of {name}" if name else ""
                    echo(f"stoker: {missing} bytes of the {chunk['stream']}{whose} were not kept here", err=True)
                if name or self._timestamps:
                    self._print_lines(lines.add(chunk))
                else:
                    self._echo(chunk["data"], chunk["stream"], nl=False)
        finally:
            self._print_lines(lines.end())

    def _print_lines(self, lines: Iterable[LogChunk]) -> None:
        for line in lines:
            time, name = line.get("time") or "", self._name(line)
            prefix = (f"{time} " if self._timestamps else "") + (f"{name} | " if name else "")
            self._echo(prefix + line["data"].removesuffix("\n").removesuffix("\r"), line["stream"])

    def _name(self, chunk: LogChunk) -> str:
        return "" if self._name_of is None else printable(self._name_of(cast(TriggerLog, chunk)))

    def _echo(self, text: str, stream: str, *, nl: bool = True) -> None:
        echo(text, nl=nl, err=stream == "stderr", raw=self._raw)


def _since(text: str) -> datetime:
    """Parse a duration before now (``90s``, ``10m``, ``2h``, ``1d``) or a time (``2031-05-06T02:30:00Z``)."""
    duration = parse_duration(text)
    if duration is not None:
        return datetime.now(UTC) - duration
    try:
        moment = datetime.fromisoformat(text)
    except ValueError:
        raise click.BadParameter(
            f"{text!r} is neither a duration (90s, 10m, 2h, 1d) nor a time (2031-05-06T02:30:00Z)"
        ) from None
    return moment if moment.tzinfo else moment.replace(tzinfo=UTC)


@click.command("logs")
@click.argument("deployment")
@click.option("-f", "--follow", is_flag=True, help="Continue until the end.")
@click.option(
    "--run",
    "number",
    type=click.IntRange(min=1),
    metavar="N",
    help="The run with this number; `history` lists the runs.",
)
@click.option("--all", "all_", is_flag=True, help="All runs, oldest first, with a line before each.")
@click.option("--tail", type=click.IntRange(min=0), metavar="N", help="Only the last N lines of each run.")
@click.option("--since", type=_since, metavar="TIME", help="Only newer output: 10m, 2h, 1d or a time in ISO 8601.")
@click.option("--timestamps", is_flag=True, help="Begin every line with its time.")
@stream_option
@click.option("--bytes", "as_bytes", is_flag=True, help="The stored bytes of one --stream, unchanged.")
@raw_option
@data_option
@click.pass_obj
def logs(
    session: Session,
    /,
    *,
    deployment: str,
    follow: bool,
    number: int | None,
    all_: bool,
    tail: int | None,
    since: datetime | None,
    timestamps: bool,
    stream: str | None,
    as_bytes: bool,
    raw: bool,
    form: str,
) -> None:
    """Print the output of a deployment: its standard output on standard output, its standard error on standard error.

    Without --run or --all, show the newest run.

    \b
      stoker deployment logs web/app1 --follow
      stoker deployment logs web/app1 --run 2 --tail 20
      stoker deployment logs web/app1 --since 10m --timestamps
    """
    if all_ and (number is not None or follow):
        raise click.UsageError(f"give either --all or {'--follow' if follow else '--run'}")
    if as_bytes and (stream is None or all_ or follow or tail is not None or since is not None):
        raise click.UsageError("--bytes needs --stream, and permits only --run beside it")
    deployments = session.client.deployments
    id_ = deployments.find_id(deployment)
    printer = LogPrinter(form, raw=raw, timestamps=timestamps, is_partial=since is not None or tail is not None)
    runs = deployments.runs(id_)
    chosen = None if all_ else _choose(runs, number, deployment)

    select = partial(_select, stream=stream, since=since)
    if as_bytes:
        config_id = next((run["config_id"] for run in chosen or ()), None)
        emit_bytes(deployments.stream_bytes(id_, str(stream), config_id))
    elif all_ and form == "table":
        chunks = list(deployments.logs(id_))
        for run in reversed(runs):
            echo(_separator(run))
            printer.all(select(chunks, [run], tail=tail))
    elif follow:
        printer.all(_follow(deployments, id_, partial(select, runs=chosen), tail))
    elif form == "table":
        printer.all(select(deployments.logs(id_), chosen, tail=tail))
    else:
        emit_data(form, list(select(deployments.logs(id_), chosen, tail=tail)))


def _follow(
    deployments: Deployments, id_: str, select: Callable[..., Iterable[LogChunk]], tail: int | None
) -> Iterator[LogChunk]:
    """Yield the log so far, or its last ``tail`` lines, and new chunks until the deployment ends."""
    pages = [] if tail is None else list(deployments.log_pages(id_))
    yield from select((chunk for page in pages for chunk in page["logs"]), tail=tail)
    yield from select(deployments.follow_logs(id_, pages[-1]["cursor"] if pages else ""))


def _choose(runs: Sequence[Run], number: int | None, deployment: str) -> Sequence[Run]:
    """Return the requested run, or else the newest."""
    return runs[:1] if number is None else [choose_run(runs, number, deployment)]


def choose_run(runs: Sequence[Run], number: int, deployment: str) -> Run:
    """Return the run with this number. Raises NotFound."""
    for run in runs:
        if run.get("number") == number:
            return run
    numbers = ", ".join(str(run.get("number")) for run in runs) or "none so far"
    raise NotFound(f"deployment {deployment} has no run {number}; it has: {numbers}", 404)


def _separator(run: Run) -> str:
    times = f"{run.get('start_time') or 'not begun'} to {run.get('end_time') or 'now'}"
    code = run.get("status_code")
    words = (run.get("action"), run.get("status") or run.get("state"), None if code is None else f"exit {code}", times)
    return f"==> run {run.get('number')}: {', '.join(str(word) for word in words if word)} <=="


def _select(
    chunks: Iterable[LogChunk],
    runs: Sequence[Run] | None,
    *,
    stream: str | None,
    since: datetime | None,
    tail: int | None = None,
) -> Iterable[LogChunk]:
    """Return the chunks of ``runs``, each of which has its own config, or of all runs; or their last ``tail`` lines."""
    config_ids = None if runs is None else {None, *(run.get("config_id") for run in runs)}
    selected = (
        chunk for chunk in chunks
        if (config_ids is None or chunk.get("config_id") in config_ids)
        and stream in (None, chunk["stream"])
        and _is_since(chunk, since)
    )  # fmt: skip
    return selected if tail is None else last_lines(selected, tail)


def _is_since(chunk: LogChunk, moment: datetime | None) -> bool:
    """Whether ``chunk`` was written at ``moment`` or later. Chunks of a service without times always match."""
    time = chunk.get("time")
    return moment is None or not time or datetime.fromisoformat(time) >= moment.replace(microsecond=0)
