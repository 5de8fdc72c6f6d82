"""What scripts wrote, passed on: each stream to ours, and said where something was cut."""

from collections.abc import Iterable
from typing import cast

import click

from stoker_client.cli._output import emit_data, printable
from stoker_client.shapes import LogChunk, TriggerLog

Key = tuple[str, str, str]  # whose, of which run, which stream

stream_option = click.option("--stream", type=click.Choice(["stdout", "stderr"]), help="Only this stream.")


class LogPrinter:
    """Prints chunks. With ``named``, whole lines with the server's name before each."""

    def __init__(self, form: str, *, named: bool = False) -> None:
        self._form = form
        self._named = named
        self._next: dict[Key, int] = {}
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
        text = self._unseen(key, chunk)
        if self._named:
            lines = (self._begun.get(key, "") + text).split("\n")
            self._begun[key] = lines.pop()
            for line in lines:
                click.echo(f"{name} | {line}", err=chunk["stream"] == "stderr")
        else:
            click.echo(text, nl=False, err=chunk["stream"] == "stderr")

    def _unseen(self, key: Key, chunk: LogChunk) -> str:
        """The service keeps the head and the tail of a long output; of the tail it may have told before, with gaps."""
        offset, size, text = chunk.get("offset"), chunk.get("size"), chunk["data"]
        if offset is None or size is None:
            return text
        reached = self._next.get(key, 0)
        self._next[key] = max(reached, offset + size)
        if offset > reached:
            where = f" of {key[0]}" if self._named else ""
            said = f"stoker: {offset - reached} bytes of the {chunk['stream']}{where} were not kept here"
            click.echo(said, err=True)
        seen = max(0, reached - offset)
        return text.encode()[seen:].decode(errors="ignore") if seen else text
