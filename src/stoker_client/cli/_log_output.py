"""What scripts wrote, passed on: each stream to ours, and said where something was cut."""

from collections.abc import Iterable
from typing import cast

import click

from stoker_client.cli._output import emit_data, printable
from stoker_client.log_text import Unseen, not_kept
from stoker_client.shapes import LogChunk, TriggerLog

Key = tuple[str, str, str]  # whose, of which run, which stream

stream_option = click.option("--stream", type=click.Choice(["stdout", "stderr"]), help="Only this stream.")


class LogPrinter:
    """Prints chunks. With ``named``, whole lines with the server's name before each."""

    def __init__(self, form: str, *, named: bool = False) -> None:
        self._form = form
        self._named = named
        self._unseen = Unseen()
        self._begun: dict[Key, str] = {}

    def all(self, chunks: Iterable[LogChunk]) -> None:
        """Print ``chunks`` as they come, then what has no end of line yet."""
        try:
            for chunk in chunks:
                self._one(chunk)
        finally:
            for key, rest in self._begun.items():
                if rest:
                    click.echo(f"{key[0]} | {rest}", err=key[2] == "stderr")

    def _one(self, chunk: LogChunk) -> None:
        if self._form != "table":
            emit_data(self._form, chunk, stream=True)
            return
        whose = cast(TriggerLog, chunk)
        name = printable(whose.get("server_name") or whose.get("server_id") or "")
        key = name, chunk.get("config_id") or "", chunk["stream"]
        text, missing = self._unseen.of(chunk)
        if missing:
            click.echo(f"stoker: {not_kept(chunk, missing, name if self._named else '')}", err=True)
        if self._named:
            lines = (self._begun.get(key, "") + text).split("\n")
            self._begun[key] = lines.pop()
            for line in lines:
                click.echo(f"{name} | {line}", err=chunk["stream"] == "stderr")
        else:
            click.echo(text, nl=False, err=chunk["stream"] == "stderr")
