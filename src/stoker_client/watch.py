"""Watching a stack until it rests."""

import time
from collections.abc import Iterator
from dataclasses import dataclass, replace

from stoker_client.errors import NotFound
from stoker_client.shapes import Resource, Stack
from stoker_client.stacks import Stacks

FIRST, LONGEST = 0.1, 5.0  # seconds between two looks
GROWTH = 1.5
SHARE = 5  # looking may take a fifth of the time, so that a stack of thousands is looked at less often
USUAL = 1.0


@dataclass(frozen=True)
class Snapshot:
    """A stack and its resources at one moment."""

    stack: Stack
    resources: tuple[Resource, ...]

    @property
    def status(self) -> str:
        """The stack's status."""
        return self.stack["stack_status"]

    @property
    def over(self) -> bool:
        """Whether nothing is going on any more."""
        return not self.status.endswith("_IN_PROGRESS")


def watch(stacks: Stacks, ref: str) -> Iterator[Snapshot]:
    """Looks at the stack ``ref`` (``name/id``) until it rests; the last one is its final state."""
    pause, last = FIRST, None
    while True:
        started = time.monotonic()
        last = _look(stacks, ref, last)
        yield last
        if last.over:
            return
        took = time.monotonic() - started
        time.sleep(min(max(pause, took * SHARE), LONGEST))
        pause = min(pause * GROWTH, USUAL)


def _look(stacks: Stacks, ref: str, last: Snapshot | None) -> Snapshot:
    """The stack first, its resources after: they are then never older than a final status."""
    try:
        stack = stacks.show(ref, outputs=False, patient=True)
        if stack["stack_status"] == "DELETE_COMPLETE":
            return Snapshot(stack, ())
        return Snapshot(stack, tuple(sorted(stacks.resources(ref, patient=True), key=_order)))
    except NotFound:
        if last is None:
            raise
        # A deleted stack may be forgotten between two looks: that is the completion that was waited for.
        return replace(last, stack={**last.stack, "stack_status": "DELETE_COMPLETE"}, resources=())


def _order(resource: Resource) -> tuple[str, str]:
    return resource.get("creation_time") or "", resource["resource_name"]


def changed(before: Snapshot | None, after: Snapshot) -> list[Resource]:
    """The resources whose state differs between two looks."""
    known = {r["resource_name"]: _state(r) for r in before.resources} if before else {}
    return [r for r in after.resources if known.get(r["resource_name"]) != _state(r)]


def _state(resource: Resource) -> tuple[str, str | None]:
    return resource["resource_status"], resource.get("physical_resource_id")
