"""A trigger on the screen: a table that is drawn anew, or a line a change where there is no screen."""

from __future__ import annotations

import threading
import time
from typing import TYPE_CHECKING, Protocol

import click
from rich.progress_bar import ProgressBar
from rich.table import Table
from rich.text import Text

from stoker_client.cli._live import MARGIN, Drawn, Plain, Shown, one_line
from stoker_client.cli._output import colour, printable
from stoker_client.cli._targets import counts, name_of, order, run_of, said_by, seconds_of, state_of, title
from stoker_client.cli._words import last_line

if TYPE_CHECKING:
    from rich.console import Console

    from stoker_client.shapes import Target, Trigger, TriggerLog
    from stoker_client.trigger_watch import Watch

BAR = 20
COUNTED = 5.0  # seconds between two lines of counts


class View(Shown, Protocol):
    """Something that shows a trigger as it goes on."""

    def update(self, watch: Watch, changed: Target | None) -> None:
        """Show how things are; ``changed`` is the server that is new in it, or it is the trigger."""

    def hear(self, log: TriggerLog) -> None:
        """Something was written on a server."""

    def tell(self, text: str) -> None:
        """Print ``text`` so that it stays."""


class TriggerLines(Plain):
    """One line for each change."""

    def __init__(self) -> None:
        super().__init__()
        self._last: dict[str, str] = {}
        self._state = ("", "")
        self._counted = 0.0

    def update(self, watch: Watch, changed: Target | None) -> None:
        if changed is None:
            self._count(watch.trigger)
        elif changed["status"] != "QUEUED":  # all are at first, which the counts tell
            percent = run_of(changed).get("percent") if changed["status"] == "IN_PROGRESS" else None
            shown = f"{percent:g} %" if percent is not None else ""
            self._news(str(changed["position"]), name_of(changed), _state(changed), shown, said_by(changed))

    def _count(self, trigger: Trigger) -> None:
        """The counts change with every server: they are told now and then, and whenever more than they is another."""
        reason = trigger.get("status_reason") or ""
        state, now = (trigger["status"], reason), self._elapsed()
        if state != self._state or now - self._counted > COUNTED:
            self._state, self._counted = state, now
            self._news("", title(trigger), trigger["status"], counts(trigger), reason)

    def hear(self, log: TriggerLog) -> None:
        """What is written is in the log."""

    def tell(self, text: str) -> None:
        click.echo(text, err=True)

    def _news(self, key: str, *words: str) -> None:
        if self._last.get(key) != (line := one_line(*words)):
            self._last[key] = line
            self._print(line)


def _state(target: Target) -> str:
    """Without the seconds of silence, which would make a line each."""
    return state_of(target).partition(" for ")[0] if target["status"] == "IN_PROGRESS" else target["status"]


class TriggerTable(Drawn):
    """A line a server on stderr, as many as there is room for, with bars; below them the counts."""

    def __init__(self, console: Console) -> None:
        super().__init__(console)
        self._lock = threading.Lock()  # the drawing is a thread's
        self._watch: Watch | None = None
        self._words: dict[str, str] = {}
        #: By position, when a server's part was told of last.
        self._told: dict[int, float] = {}

    def update(self, watch: Watch, changed: Target | None) -> None:
        with self._lock:
            self._watch = watch
            self._clock.see("", f"_{watch.trigger['status']}")
            if changed is not None:
                self._told[changed["position"]] = time.monotonic()
            if changed is not None and changed["status"] != "QUEUED":
                self._clock.see(str(changed["position"]), f"_{changed['status']}")

    def hear(self, log: TriggerLog) -> None:
        if said := last_line(log["data"]):
            with self._lock:
                self._words[log["server_id"]] = said

    def tell(self, text: str) -> None:
        self._console.print(Text(printable(text)), soft_wrap=True)  # a path is not to be broken

    def render(self) -> Table:
        """The table as it is now."""
        grid = Table.grid(padding=(0, 2, 0, 0))
        with self._lock:
            if self._watch is None:
                return grid
            trigger, targets = self._watch.trigger, self._watch.targets
            shown = order(targets, max(self._console.height - MARGIN, 3))
            table = Table.grid(padding=(0, 2, 0, 0))
            for _ in range(2):
                table.add_column(no_wrap=True)
            table.add_column(width=BAR)
            for _ in range(2):
                table.add_column(no_wrap=True, justify="right")
            table.add_column(no_wrap=True, overflow="ellipsis", style="dim", ratio=1)
            for target in shown:
                table.add_row(*self._row(target))
        grid.add_row(table)
        if hidden := len(targets) - len(shown):
            grid.add_row(Text(f"… and {hidden} more", style="dim"))
        grid.add_row(self._summary(trigger))
        return grid

    def _row(self, target: Target) -> tuple[Text | ProgressBar, ...]:
        ago = time.monotonic() - self._told.get(target["position"], time.monotonic())
        state, percent = state_of(target, ago), run_of(target).get("percent")
        running = target["status"] == "IN_PROGRESS"
        if target["status"] == "COMPLETE":
            percent = 100.0
        return (
            Text(printable(name_of(target))),
            Text(printable(state), style=colour(target["status"])),
            _bar(percent) if percent is not None else Text(""),
            Text(f"{percent:.0f} %" if percent is not None else "", style="dim"),
            Text(self._elapsed(target), style="dim"),
            Text(printable(said_by(target) or (self._words.get(target["server_id"], "") if running else ""))),
        )

    def _elapsed(self, target: Target) -> str:
        if target["status"] == "QUEUED":
            return ""
        seconds = self._clock.elapsed(str(target["position"])) or seconds_of(run_of(target))
        return f"{seconds:.1f} s" if seconds is not None else ""

    def _summary(self, trigger: Trigger) -> Text:
        status = trigger["status"]
        return Text.assemble(
            (printable(title(trigger)), "bold"),
            "  ",
            (status, colour(status)),
            f"  {counts(trigger)}  ",
            (f"{self._clock.elapsed(''):.1f} s", "dim"),
            no_wrap=True,
        )


def _bar(percent: float) -> ProgressBar:
    return ProgressBar(total=100, completed=percent, width=BAR)
