"""A stack on the screen while it changes: a tree that is drawn anew, or a line a change where there is no screen."""

import time
from collections.abc import Callable
from types import TracebackType
from typing import Protocol, Self

import click
from rich.console import Console, Group
from rich.live import Live
from rich.text import Text
from rich.tree import Tree

from stoker_client.cli._output import colour, printable
from stoker_client.shapes import Resource
from stoker_client.watch import Snapshot, changed

REDRAWS = 4  # a second
MARGIN = 4  # lines of the screen left to the stack itself, the count of hidden resources and the prompt

LastLog = Callable[[Resource], str]


class Progress(Protocol):
    """Something that shows snapshots as they come."""

    def update(self, snapshot: Snapshot) -> None:
        """Show ``snapshot``."""

    def __enter__(self) -> Self: ...

    def __exit__(
        self, kind: type[BaseException] | None, problem: BaseException | None, trace: TracebackType | None
    ) -> None: ...


class Clock:
    """How long each thing has been in progress, as far as this program has seen."""

    def __init__(self, now: Callable[[], float] = time.monotonic) -> None:
        self._now = now
        self._spans: dict[str, tuple[str, float, float | None]] = {}

    def see(self, name: str, status: str) -> None:
        """Take note of the status of ``name``. The time runs from one IN_PROGRESS to whatever ends it."""
        known = self._spans.get(name)
        if known is not None and known[0] == status:
            return
        now = self._now()
        start = known[1] if known and known[0].endswith("_IN_PROGRESS") else now
        self._spans[name] = status, start, None if status.endswith("_IN_PROGRESS") else now

    def elapsed(self, name: str) -> float:
        """Seconds, still growing while it is in progress; none for what was never seen."""
        if name not in self._spans:
            return 0.0
        _, start, end = self._spans[name]
        return (self._now() if end is None else end) - start


class Lines:
    """One line on stderr for each change."""

    def __init__(self) -> None:
        self._clock = Clock()
        self._last: Snapshot | None = None

    def update(self, snapshot: Snapshot) -> None:
        """Print what changed since the last one."""
        stack = snapshot.stack
        self._clock.see("", "_IN_PROGRESS")
        for resource in changed(self._last, snapshot):
            reason = resource.get("resource_status_reason")
            self._print(resource["resource_name"], resource["resource_status"], reason)
        if self._last is None or self._last.status != snapshot.status:
            self._print(stack["stack_name"], snapshot.status, stack.get("stack_status_reason"))
        self._last = snapshot

    def _print(self, name: str, status: str, reason: str | None) -> None:
        line = f"{self._clock.elapsed(''):7.1f} s  {name}  {status}  {reason or ''}"
        click.echo(printable(" ".join(line.splitlines())).rstrip(), err=True)

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, problem: BaseException | None, trace: TracebackType | None
    ) -> None:
        """Nothing to put away."""


class LiveTree:
    """The stack as a tree on stderr: what runs and what failed first, each with its time and its last words."""

    def __init__(self, console: Console, last_log: LastLog) -> None:
        self._console = console
        self._last_log = last_log
        self._clock = Clock()
        self._snapshot: Snapshot | None = None
        self._words: dict[str, str] = {}
        self._live = Live(console=console, get_renderable=self.render, refresh_per_second=REDRAWS)

    def update(self, snapshot: Snapshot) -> None:
        """Show ``snapshot`` from the next drawing on."""
        self._clock.see("", snapshot.status)
        for resource in snapshot.resources:
            self._clock.see(f"/{resource['resource_name']}", resource["resource_status"])
        running = (resource for resource in self._shown(snapshot) if _running(resource))
        self._words = {resource["resource_name"]: self._last_log(resource) for resource in running}
        self._snapshot = snapshot

    def render(self) -> Tree | Group:
        """The tree as it is now."""
        snapshot = self._snapshot
        if snapshot is None:
            return Group()
        tree = Tree(self._line(snapshot.stack["stack_name"], snapshot.status, ""), guide_style="dim")
        shown = self._shown(snapshot)
        for resource in shown:
            name = resource["resource_name"]
            leaf = tree.add(self._line(name, resource["resource_status"], f"/{name}"))
            if words := self._words.get(name) if _running(resource) else _failure(resource):
                leaf.add(Text(printable(words), style="dim", no_wrap=True, overflow="ellipsis"))
        if hidden := len(snapshot.resources) - len(shown):
            tree.add(Text(f"… and {hidden} more", style="dim"))
        return tree

    def _shown(self, snapshot: Snapshot) -> list[Resource]:
        """As many resources as the screen has room for, each taking two lines at most."""
        room = max((self._console.height - MARGIN) // 2, 3)
        return sorted(snapshot.resources, key=_rank)[:room]

    def _line(self, name: str, status: str, key: str) -> Text:
        elapsed = self._clock.elapsed(key)
        taken = f"  {elapsed:.1f} s" if elapsed else ""  # over before the first look: nobody knows
        return Text.assemble(printable(name), "  ", (status, colour(status)), (taken, "dim"), no_wrap=True)

    def __enter__(self) -> Self:
        self._live.__enter__()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, problem: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._live.__exit__(kind, problem, trace)


def _running(resource: Resource) -> bool:
    return resource["resource_status"].endswith("_IN_PROGRESS")


def _failure(resource: Resource) -> str:
    failed = resource["resource_status"].endswith("_FAILED")
    return " ".join((resource.get("resource_status_reason") or "").split()) if failed else ""


def _rank(resource: Resource) -> int:
    """Failed, running, done, waiting. The order among equals stays, which is that of creation."""
    status = resource["resource_status"]
    return 0 if status.endswith("_FAILED") else 1 if _running(resource) else 3 if status.startswith("INIT_") else 2
