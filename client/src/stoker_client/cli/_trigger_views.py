"""Live views of a trigger: an updated table on a terminal, or one line per change elsewhere."""

from __future__ import annotations

import time
from collections.abc import Sequence
from typing import TYPE_CHECKING

from rich.console import Group
from rich.progress_bar import ProgressBar
from rich.text import Text

from stoker_client.cli._live import Drawn, Plain, one_line
from stoker_client.cli._output import color, echo, printable
from stoker_client.cli._runs import counts, order, run_of, seconds_of, state_of, summary_of, title
from stoker_client.results import last_line

if TYPE_CHECKING:
    from rich.console import Console, RenderableType

    from stoker_client.shapes import Target, Trigger
    from stoker_client.triggers import TriggerLog, Watch

_BAR = 20
_COUNTED = 5.0  # seconds between two lines with counts


class TriggerLines(Plain):
    """Prints one line per change."""

    def __init__(self) -> None:
        super().__init__()
        self._last: dict[str, str] = {}
        self._state = ("", "")
        self._counted = 0.0

    def update(self, watch: Watch, changed: Target | None) -> None:
        """Print the current state. ``changed`` is the changed server, or None if the trigger changed."""
        if changed is None:
            self._count(watch.trigger)
        elif changed["status"] != "QUEUED":  # all targets are queued at first, which the counts show
            percent = run_of(changed).get("percent") if changed["status"] == "IN_PROGRESS" else None
            progress = f"{percent:g} %" if percent is not None else ""
            self._news(
                str(changed["position"]), watch.labels.of(changed), _state(changed), progress, summary_of(changed)
            )

    def _count(self, trigger: Trigger) -> None:
        """
        Print counts, which change with each server: every few seconds, and when the trigger's state or reason changes.
        """
        reason = trigger.get("status_reason") or ""
        state, now = (trigger["status"], reason), self._elapsed()
        if state != self._state or now - self._counted > _COUNTED:
            self._state, self._counted = state, now
            self._news("", title(trigger), trigger["status"], counts(trigger), reason)

    def add_output(self, log: TriggerLog) -> None:
        """Ignore output, which the log contains."""

    def print_line(self, text: str) -> None:
        """Print ``text`` on stderr."""
        echo(text, err=True)

    def _news(self, key: str, *words: str) -> None:
        if self._last.get(key) != (line := one_line(*words)):
            self._last[key] = line
            self._print(line)


def _state(target: Target) -> str:
    """Return the state without the seconds of silence, because each new number would print a line."""
    return state_of(target).partition(" for ")[0] if target["status"] == "IN_PROGRESS" else target["status"]


class TriggerTable(Drawn):
    """Shows as many servers as fit, with progress bars."""

    def __init__(self, console: Console) -> None:
        super().__init__(console)
        self._watch: Watch | None = None
        #: By server and resource: the last line of the output.
        self._words: dict[tuple[str, str | None], str] = {}
        #: By position: the time of the last event about a server.
        self._reported_at: dict[int, float] = {}

    def update(self, watch: Watch, changed: Target | None) -> None:
        """Show the state from the next refresh on. ``changed``: as in ``TriggerLines``."""
        with self._lock:
            self._watch = watch
            self._clock.see("", f"_{watch.trigger['status']}")
            if changed is not None:
                self._reported_at[changed["position"]] = time.monotonic()
            if changed is not None and changed["status"] != "QUEUED":
                self._clock.see(str(changed["position"]), f"_{changed['status']}")

    def add_output(self, log: TriggerLog) -> None:
        """Show the last line of the output beside its server."""
        if line := last_line(log["data"]):
            with self._lock:
                self._words[log["server_id"], log.get("resource_name")] = line

    def print_line(self, text: str) -> None:
        """Print ``text`` above the table."""
        self._console.print(Text(printable(text)), soft_wrap=True)  # no line breaks inside of paths

    def view(self, room: int) -> Group:
        """Return the current view."""
        if self._watch is None:
            return Group()
        trigger, targets, labels = self._watch.trigger, self._watch.targets, self._watch.labels
        rows = [(Text(printable(labels.of(target))), *self._row(target)) for target in order(targets, room)]
        hidden = len(targets) - len(rows)
        rest = f"{counts(trigger)}{f'; {hidden} more' if hidden else ''}"
        if trigger["status"] != "IN_PROGRESS":
            return self._draw(title(trigger), trigger["status"], rows, rest)
        total = trigger.get("total") or 0
        left = (trigger.get("queued") or 0) + (trigger.get("running") or 0)
        return self._draw(title(trigger), trigger["status"], rows, rest, (total - left, total))

    def _row(self, target: Target) -> Sequence[RenderableType]:
        ago = time.monotonic() - self._reported_at.get(target["position"], time.monotonic())
        state, percent = state_of(target, ago), run_of(target).get("percent")
        running = target["status"] == "IN_PROGRESS"
        if target["status"] == "COMPLETE":
            percent = 100
        words = self._words.get((target["server_id"], target.get("resource_name")), "") if running else ""
        return (
            Text(printable(state), style=color(target["status"])),
            ProgressBar(total=100, completed=percent, width=_BAR) if percent is not None else Text(""),
            Text(f"{percent:.0f} %" if percent is not None else "", style="dim", justify="right"),
            Text(self._elapsed(target), style="dim", justify="right"),
            Text(printable(summary_of(target) or words)),
        )

    def _elapsed(self, target: Target) -> str:
        if target["status"] == "QUEUED":
            return ""
        seconds = self._clock.elapsed(str(target["position"])) or seconds_of(run_of(target))
        return f"{seconds:.1f} s" if seconds is not None else ""
