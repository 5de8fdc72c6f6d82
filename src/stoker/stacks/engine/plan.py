"""
The plan of a phase: the steps and the order between them.

A plan made in this transaction is in memory, and only its remaining steps are stored. Later transactions work on the
stored rows and read only the step that ended and the steps that waited for it.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping
from typing import Any, Protocol

from stoker.model.stack import Resource, Step, StepState
from stoker.store import steps
from stoker.store.tx import Tx


class Plan(Protocol):
    """The steps of a phase, in memory or stored. Each step has a key."""

    def ready(self, limit: int) -> list[str]:
        """Return up to ``limit`` keys of steps that wait for nothing and have not started."""

    def definition(self, key: str) -> Mapping[str, Any] | None:
        """Return the definition to apply, in JSON form, or None if there is no such step or the step has none."""

    def is_running(self, key: str) -> bool:
        """Return whether the step has started, so that a report can end it."""

    def start(self, key: str) -> None:
        """Mark a step as started. A report ends the step."""

    def end(self, key: str) -> list[str]:
        """End a step. Return the keys of steps that waited only for this one."""

    def save(self) -> None: ...


def forward(needs: Mapping[str, Collection[str]]) -> Mapping[str, Collection[str]]:
    """
    Return the order of the apply phase: each resource after its requirements.

    Requirements outside the plan are already met.
    """
    return {key: [need for need in required if need in needs] for key, required in needs.items()}


def backward(outdated: Iterable[Resource]) -> Mapping[str, Collection[str]]:
    """Return the order of the cleanup phase, by resource id: each resource after those that require it."""
    listed = list(outdated)
    after: dict[str, list[str]] = {resource.id: [] for resource in listed}
    for resource in listed:
        for id in resource.requires.values():
            if id in after:
                after[id].append(resource.id)
    return after


def forward_by_id(present: Iterable[Resource]) -> Mapping[str, Collection[str]]:
    """Return the order of the action phase, by resource id: each resource after its requirements."""
    listed = list(present)
    ids = {resource.id for resource in listed}
    return {resource.id: [id for id in resource.requires.values() if id in ids] for resource in listed}


class NewPlan:
    """A plan in memory. ``needs``: for each key, the keys that must end before."""

    def __init__(
        self, tx: Tx, stack_id: str, needs: Mapping[str, Collection[str]], definitions: Mapping[str, Mapping[str, Any]]
    ) -> None:
        self._tx = tx
        self._stack_id = stack_id
        self._definitions = definitions
        self._waiting = {key: len(set(needed)) for key, needed in needs.items()}
        self._running: set[str] = set()
        self._dependents: dict[str, list[str]] = {}
        for key, needed in needs.items():
            for need in set(needed):
                self._dependents.setdefault(need, []).append(key)

    def __len__(self) -> int:
        return len(self._waiting)

    def definitions(self) -> Mapping[str, Mapping[str, Any]]:
        """Return the definitions of steps that have not ended."""
        return {key: definition for key, definition in self._definitions.items() if key in self._waiting}

    def ready(self, limit: int) -> list[str]:
        keys = [key for key, waiting in self._waiting.items() if waiting == 0 and key not in self._running]
        return keys[:limit]

    def definition(self, key: str) -> Mapping[str, Any] | None:
        return self._definitions.get(key)

    def is_running(self, key: str) -> bool:
        return key in self._running

    def start(self, key: str) -> None:
        self._running.add(key)

    def end(self, key: str) -> list[str]:
        del self._waiting[key]
        self._running.discard(key)
        freed = []
        for dependent in self._dependents.get(key, ()):
            self._waiting[dependent] -= 1
            if self._waiting[dependent] == 0:
                freed.append(dependent)
        return freed

    def save(self) -> None:
        """Write the remaining steps. Call this only once: later transactions work on the stored rows."""
        left = [
            Step(
                stack_id=self._stack_id,
                key=key,
                waiting=waiting,
                state=StepState.RUNNING if key in self._running else StepState.WAITING,
                definition=self._definitions.get(key),
            )
            for key, waiting in self._waiting.items()
        ]
        needs = [
            (self._stack_id, need, key)
            for need, dependents in self._dependents.items()
            if need in self._waiting
            for key in dependents
        ]
        steps.add_all(self._tx, left, needs)


class StoredPlan:
    """A plan that an earlier transaction stored."""

    def __init__(self, tx: Tx, stack_id: str) -> None:
        self._tx = tx
        self._stack_id = stack_id
        self._read: dict[str, Step | None] = {}
        self._started: list[str] = []

    def ready(self, limit: int) -> list[str]:
        return steps.ready(self._tx, self._stack_id, limit)

    def definition(self, key: str) -> Mapping[str, Any] | None:
        step = self._step(key)
        return step.definition if step else None

    def is_running(self, key: str) -> bool:
        step = self._step(key)
        return key in self._started or (step is not None and step.state is StepState.RUNNING)

    def start(self, key: str) -> None:
        self._started.append(key)

    def end(self, key: str) -> list[str]:
        self._read[key] = None
        return steps.end(self._tx, self._stack_id, key)

    def save(self) -> None:
        steps.set_running(self._tx, self._stack_id, self._started)
        self._started = []

    def _step(self, key: str) -> Step | None:
        if key not in self._read:
            self._read[key] = steps.get(self._tx, self._stack_id, key)
        return self._read[key]
