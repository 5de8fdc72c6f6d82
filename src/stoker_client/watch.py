"""Watches a stack until its operation ends."""

import time
from collections.abc import Iterator
from dataclasses import dataclass, replace

from stoker_client.errors import NotFound
from stoker_client.shapes import Resource, Stack
from stoker_client.stacks import Stacks

FIRST, LONGEST = 0.1, 5.0  # seconds between two polls
GROWTH = 1.5
SHARE = 5  # polls take at most a fifth of the time, so large stacks are polled less often
USUAL = 1.0


@dataclass(frozen=True)
class Snapshot:
    """The state of a stack and its resources at one moment."""

    stack: Stack
    resources: tuple[Resource, ...]

    @property
    def status(self) -> str:
        """The stack's status."""
        return self.stack["stack_status"]

    @property
    def over(self) -> bool:
        """Whether no operation is in progress."""
        return not self.status.endswith("_IN_PROGRESS")


def watch(stacks: Stacks, ref: str) -> Iterator[Snapshot]:
    """Yield snapshots of the stack ``ref`` (``name/id``) until its operation ends. The last one is the final state."""
    pause, last = FIRST, None
    while True:
        started = time.monotonic()
        last = _read_snapshot(stacks, ref, last)
        yield last
        if last.over:
            return
        duration = time.monotonic() - started
        time.sleep(min(max(pause, duration * SHARE), LONGEST))
        pause = min(pause * GROWTH, USUAL)


def _read_snapshot(stacks: Stacks, ref: str, last: Snapshot | None) -> Snapshot:
    """Read the stack before its resources, so that resources are never older than a final status."""
    try:
        stack = stacks.show(ref, outputs=False, patient=True)
        if stack["stack_status"] == "DELETE_COMPLETE":
            return Snapshot(stack, ())
        return Snapshot(stack, tuple(sorted(stacks.resources(ref, patient=True), key=_order)))
    except NotFound:
        if last is None:
            raise
        # The stack may be removed between two polls, which completes the deletion.
        return replace(last, stack={**last.stack, "stack_status": "DELETE_COMPLETE"}, resources=())


def _order(resource: Resource) -> tuple[str, str]:
    return resource.get("creation_time") or "", resource["resource_name"]


def changed_resources(before: Snapshot | None, after: Snapshot) -> list[Resource]:
    """Return the resources whose state differs between two snapshots."""
    states = {r["resource_name"]: _state(r) for r in before.resources} if before else {}
    return [r for r in after.resources if states.get(r["resource_name"]) != _state(r)]


def _state(resource: Resource) -> tuple[str, str | None]:
    return resource["resource_status"], resource.get("physical_resource_id")
