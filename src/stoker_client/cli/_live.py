"""A stack on the screen while it changes: a tree that is drawn anew, or a line a change where there is no screen."""

import time
from collections.abc import Callable
from typing import Protocol, Self

import click
from rich.console import Console, Group, RenderableType
from rich.live import Live
from rich.text import Text
from rich.tree import Tree

from stoker_client.cli._output import colour, printable
from stoker_client.shapes import Resource
from stoker_client.watch import Snapshot, changed

REDRAWS = 4  # a second
MARGIN = 4  # lines of the screen left to the thing itself, the count of what is hidden and the prompt

LastLog = Callable[[Resource], str]


class Shown(Protocol):
    """Something that is on the screen while it is entered."""

    def __enter__(self) -> Self: ...

    def __exit__(self, *why: object) -> None: ...


class Progress(Shown, Protocol):
    """Something that shows snapshots as they come."""

    def update(self, snapshot: Snapshot) -> None:
        """Show ``snapshot``."""


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


class Plain:
    """Lines on stderr, each with the seconds since the watching began."""

    def __init__(self) -> None:
        self._began = time.monotonic()

    def _elapsed(self) -> float:
        return time.monotonic() - self._began

    def _print(self, line: str) -> None:
        click.echo(f"{self._elapsed():7.1f} s  {line}", err=True)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *why: object) -> None:
        """Nothing to put away."""


def one_line(*words: str) -> str:
    """Those ``words`` that say something, whatever characters they have."""
    return printable(" ".join("  ".join(word for word in words if word).splitlines())).rstrip()


class Drawn:
    """What ``render`` gives, on the screen of ``console``, drawn anew as time goes by."""

    def __init__(self, console: Console) -> None:
        self._console = console
        self._clock = Clock()

    def render(self) -> RenderableType:
        """What there is to see now."""
        raise NotImplementedError

    def __enter__(self) -> Self:
        self._live = Live(console=self._console, get_renderable=self.render, refresh_per_second=REDRAWS)
        self._live.start()
        return self

    def __exit__(self, *why: object) -> None:
        self._live.stop()


class Lines(Plain):
    """One line for each change."""

    def __init__(self) -> None:
        super().__init__()
        self._last: Snapshot | None = None

    def update(self, snapshot: Snapshot) -> None:
        """Print what changed since the last one."""
        stack = snapshot.stack
        for resource in changed(self._last, snapshot):
            reason = resource.get("resource_status_reason") or ""
            self._print(one_line(resource["resource_name"], resource["resource_status"], reason))
        if self._last is None or self._last.status != snapshot.status:
            self._print(one_line(stack["stack_name"], snapshot.status, stack.get("stack_status_reason") or ""))
        self._last = snapshot


class LiveTree(Drawn):
    """The stack as a tree on stderr: what runs and what failed first, each with its time and its last words."""

    def __init__(self, console: Console, last_log: LastLog) -> None:
        super().__init__(console)
        self._last_log = last_log
        self._snapshot: Snapshot | None = None
        self._words: dict[str, str] = {}

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


def _running(resource: Resource) -> bool:
    return resource["resource_status"].endswith("_IN_PROGRESS")


def _failure(resource: Resource) -> str:
    failed = resource["resource_status"].endswith("_FAILED")
    return " ".join((resource.get("resource_status_reason") or "").split()) if failed else ""


def _rank(resource: Resource) -> int:
    """Failed, running, done, waiting. The order among equals stays, which is that of creation."""
    status = resource["resource_status"]
    return 0 if status.endswith("_FAILED") else 1 if _running(resource) else 3 if status.startswith("INIT_") else 2
