"""Prints the output of scripts: each stream to the same stream of this process, with notes about missing parts."""

from collections.abc import Callable, Iterable
from typing import cast

import click

from stoker_client.cli._output import echo, emit_data, printable
from stoker_client.log_text import Unseen, not_kept
from stoker_client.shapes import LogChunk, TriggerLog
from stoker_client.terminal import split_lines

Key = tuple[str, str, str]  # target, run, stream

stream_option = click.option("--stream", type=click.Choice(["stdout", "stderr"]), help="Only this stream.")


class LogPrinter:
    """
    Prints log chunks.

    With ``name_of``, prints complete lines after the name of the run's target; with ``timestamps``, after the time.
    With ``raw``, a terminal also receives the scripts' control sequences.
    """

    def __init__(
        self,
        form: str,
        *,
        name_of: Callable[[TriggerLog], str] | None = None,
        raw: bool = False,
        timestamps: bool = False,
    ) -> None:
        self._form = form
        self._name_of = name_of
        self._raw = raw
        self._timestamps = timestamps
        self._unseen = Unseen()
        #: Incomplete lines, each with its prefix.
        self._begun: dict[Key, tuple[str, str]] = {}

    def all(self, chunks: Iterable[LogChunk]) -> None:
        """Print ``chunks`` as they arrive, and incomplete lines at the end."""
        try:
            for chunk in chunks:
                self._one(chunk)
        finally:
            for key, (prefix, rest) in self._begun.items():
                if rest:
                    self._echo(prefix + rest.removesuffix("\r"), key[2])
            self._begun.clear()

    def _one(self, chunk: LogChunk) -> None:
        if self._form != "table":
            emit_data(self._form, chunk, stream=True)
            return
        name = printable(self._name_of(cast(TriggerLog, chunk))) if self._name_of is not None else ""
        key = name, chunk.get("config_id") or "", chunk["stream"]
        text, missing = self._unseen.of(chunk)
        if missing:
            echo(f"stoker: {not_kept(chunk, missing, name)}", err=True)
        if not (name or self._timestamps):
            self._echo(text, chunk["stream"], nl=False)
            return
        now = (f"{chunk.get('time') or ''} " if self._timestamps else "") + (f"{name} | " if name else "")
        prefix, rest = self._begun.get(key, (now, ""))
        *lines, last = split_lines(rest + text)
        for line in lines:
            self._echo(f"{prefix}{line}", chunk["stream"])
            prefix = now
        self._begun[key] = (prefix if last else now, last)

    def _echo(self, text: str, stream: str, *, nl: bool = True) -> None:
        echo(text, nl=nl, err=stream == "stderr", raw=self._raw)
