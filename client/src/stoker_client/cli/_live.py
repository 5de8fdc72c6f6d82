"""Live views of an operation, and those of a stack: drawn on a terminal, or one line per event elsewhere."""

import threading
import time
from collections import Counter
from collections.abc import Callable, Sequence
from typing import Self

from rich.console import Console, Group, RenderableType
from rich.live import Live
from rich.progress_bar import ProgressBar
from rich.table import Table
from rich.text import Text

from stoker_client.cli._output import color, echo, printable
from stoker_client.results import failure_text, last_line
from stoker_client.shapes import Resource
from stoker_client.stacks import Snapshot, is_of_stack

REDRAWS = 4  # per second
_MARGIN = 5  # lines for the head, the bar, the counts and the prompt
_BAR = 40

#: Heat's reason of a resource without remarks.
_ORDINARY = "state changed"


class Clock:
    """Measures how long each object has been in progress, as far as this program observed it."""

    def __init__(self, now: Callable[[], float] = time.monotonic) -> None:
        self._now = now
        self._spans: dict[str, tuple[str, float, float | None]] = {}

    def see(self, name: str, status: str) -> None:
        """Record the status of ``name``. The time runs from IN_PROGRESS to any other status."""
        span = self._spans.get(name)
        if span is not None and span[0] == status:
            return
        now = self._now()
        start = span[1] if span and span[0].endswith("_IN_PROGRESS") else now
        self._spans[name] = status, start, None if status.endswith("_IN_PROGRESS") else now

    def elapsed(self, name: str) -> float:
        """Return the seconds, which grow while the object is in progress; 0 for an unknown object."""
        if name not in self._spans:
            return 0.0
        _, start, end = self._spans[name]
        return (self._now() if end is None else end) - start


class Plain:
    """Prints lines to stderr, each with the seconds since the start."""

    def __init__(self) -> None:
        self._began = time.monotonic()

    def _elapsed(self) -> float:
        return time.monotonic() - self._began

    def _print(self, line: str) -> None:
        echo(f"{self._elapsed():7.1f} s  {line}", err=True)


def one_line(*words: str) -> str:
    """Join ``words`` that are not empty in one printable line."""
    return printable(" ".join("  ".join(word for word in words if word).splitlines())).rstrip()


class Drawn:
    """Shows an operation on stderr, and refreshes it: its status and time, a bar of what is done, and its objects."""

    def __init__(self, console: Console) -> None:
        self._console = console
        self._clock = Clock()
        self._lock = threading.Lock()  # the refresh runs in another thread

    def render(self) -> Group:
        """Return what is drawn."""
        with self._lock:
            return self.view(max(self._console.height - _MARGIN, 3))

    def view(self, room: int) -> Group:
        """Return what is drawn, with at most ``room`` rows. The caller holds the lock."""
        raise NotImplementedError

    def _draw(
        self,
        name: str,
        status: str,
        rows: Sequence[Sequence[RenderableType]],
        rest: str = "",
        done: tuple[int, int] | None = None,
    ) -> Group:
        """
        Return the status and the time of an operation, and its objects.

        ``rows``: the objects that are shown, most important first; their last cells are cut to the width. ``rest``:
        what there is besides them. ``done``: how many objects are done, and of how many.
        """
        colored = status, color(status)
        head = Text.assemble((printable(name), "bold"), "  ", colored, (self._seconds(""), "dim"), no_wrap=True)
        parts: list[RenderableType] = [head]
        if done is not None:
            bar = Table.grid(padding=(0, 2, 0, 0))
            bar.add_row(ProgressBar(total=done[1], completed=done[0], width=_BAR), Text(f"{done[0]} of {done[1]}"))
            parts.append(bar)
        if rows:
            table = Table.grid(padding=(0, 2, 0, 0))
            for _ in rows[0][:-1]:
                table.add_column(no_wrap=True)
            table.add_column(no_wrap=True, overflow="ellipsis", style="dim", ratio=1)
            for row in rows:
                table.add_row(*row)
            parts.append(table)
        if rest:
            parts.append(Text(rest, style="dim", no_wrap=True))
        return Group(*parts)

    def _seconds(self, key: str) -> str:
        elapsed = self._clock.elapsed(key)
        return f"  {elapsed:.1f} s" if elapsed else ""  # ended before the first update, so the time is unknown

    def __enter__(self) -> Self:
        self._live = Live(console=self._console, get_renderable=self.render, refresh_per_second=REDRAWS)
        self._live.start()
        return self

    def __exit__(self, *why: object) -> None:
        self._live.stop()


class Lines(Plain):
    """Prints one line per event."""

    def __init__(self) -> None:
        super().__init__()
        self._printed = 0

    def update(self, snapshot: Snapshot) -> None:
        """Print the events since the previous snapshot."""
        for event in snapshot.events[self._printed :]:
            status, reason = event["resource_status"], event.get("resource_status_reason") or ""
            if reason == _ORDINARY:
                reason = ""
            if status.endswith("_FAILED"):  # of the stack, the command's last lines state the reason
                reason = "" if is_of_stack(event, snapshot.ref) else failure_text(reason)
            self._print(one_line(event["resource_name"], status, reason))
        self._printed = len(snapshot.events)


class LiveStack(Drawn):
    """
    Shows the operation on a stack: what runs now, for how long and its last line.

    Failed resources stay; completed ones and those that have not begun are only counted.
    """

    def __init__(self, console: Console) -> None:
        super().__init__(console)
        self._snapshot: Snapshot | None = None
        #: The most resources that were listed: those that are deleted disappear.
        self._total = 0

    def update(self, snapshot: Snapshot) -> None:
        """Show ``snapshot`` from the next refresh on."""
        with self._lock:
            self._clock.see("", snapshot.status)
            for resource in snapshot.resources:
                self._clock.see(f"/{resource['resource_name']}", resource["resource_status"])
            self._total = max(self._total, len(snapshot.resources))
            self._snapshot = snapshot

    def view(self, room: int) -> Group:
        """Return the current view."""
        snapshot = self._snapshot
        if snapshot is None:
            return Group()
        visible = sorted((each for each in snapshot.resources if _rank(each) <= _RUNNING), key=_rank)[:room]
        rows = [self._row(resource) for resource in visible]
        if not snapshot.status.endswith("_IN_PROGRESS"):
            return self._draw(snapshot.name, snapshot.status, rows)
        counts = Counter(map(_rank, snapshot.resources))
        hidden = counts[_FAILED] + counts[_RUNNING] - len(visible)
        words = ((hidden, "more"), (counts[_DONE], "complete"), (counts[_WAITING], "waiting"))
        rest = ", ".join(f"{count} {word}" for count, word in words if count)
        return self._draw(snapshot.name, snapshot.status, rows, rest, self._done(snapshot))

    def _done(self, snapshot: Snapshot) -> tuple[int, int] | None:
        """Return the counts of the bar. An update has none: the service does not say which resources it will change."""
        action = snapshot.status.partition("_")[0]
        if action in ("UPDATE", "ROLLBACK") or not self._total:
            return None
        left = [each for each in snapshot.resources if each["resource_status"] != f"{action}_COMPLETE"]
        return self._total - len(left), self._total

    def _row(self, resource: Resource) -> Sequence[RenderableType]:
        name, status = resource["resource_name"], resource["resource_status"]
        is_running = _is_running(resource)
        words = last_output(resource) if is_running else failure_text(resource.get("resource_status_reason"))
        return (
            Text.assemble(("▶ " if is_running else "✗ ", color(status)), printable(name)),
            Text(self._seconds(f"/{name}").strip(), style="dim", justify="right"),
            Text(printable(words)),
        )


_FAILED, _RUNNING, _DONE, _WAITING = range(4)


def _is_running(resource: Resource) -> bool:
    return resource["resource_status"].endswith("_IN_PROGRESS")


def _rank(resource: Resource) -> int:
    """Rank resources: failed, running, completed, waiting. Equal ranks keep the order of creation."""
    status = resource["resource_status"]
    if status.endswith("_FAILED"):
        return _FAILED
    if _is_running(resource):
        return _RUNNING
    return _WAITING if status.startswith("INIT_") else _DONE


def last_output(resource: Resource) -> str:
    """Return the last line of the output of a running deployment, or what it waits for; Heat says neither."""
    deployment = resource.get("deployment") or {}
    return last_line(deployment.get("last_log") or "") or deployment.get("status_reason") or ""
