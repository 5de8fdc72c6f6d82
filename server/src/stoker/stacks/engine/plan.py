"""
The plan of a phase: the steps and the order between them.

The key of a step is the name of a resource in the apply phase, which brings a definition to the resource of this name.
All other steps have the id of a resource as their key, also those that an apply step inserts before itself.

A plan made in this transaction is in memory, and only the steps that have not started are stored. A started step is
in the row of its resource (``Resource.operation``). Later transactions work on the stored rows and read only the steps
that waited for the one that ended.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping
from typing import Any

from msgspec.structs import replace

from stoker.model.stack import Resource, Step, StepState
from stoker.store import steps
from stoker.store.tx import Tx


class Plan:
    """The steps of a phase, as an earlier transaction has stored them. Each step has a key."""

    def __init__(self, tx: Tx, stack_id: str) -> None:
        self._tx = tx
        self._stack_id = stack_id
        #: The known steps by key; None: the step has started or ended, or there is none.
        self._steps: dict[str, Step | None] = {}
        #: Steps with rows that have started or ended.
        self._started: list[str] = []

    def definition(self, key: str) -> Mapping[str, Any] | None:
        """Return the definition that a step is to apply, in JSON form; None if it has started, or has none."""
        step = self._find(key)
        return step.definition if step is not None else None

    def state(self, key: str) -> StepState | None:
        """Return whether a step waits, or a gate has paused it before its start; None if it has started."""
        step = self._find(key)
        return step.state if step is not None else None

    def unsaved_definitions(self) -> Mapping[str, Mapping[str, Any]]:
        """Return the definitions of the steps that are not stored and have not started."""
        return {}

    def ready(self, limit: int) -> list[str]:
        """Return up to ``limit`` keys of steps that wait for nothing and have not started."""
        return self._remember(steps.ready(self._tx, self._stack_id, limit))

    def insert(self, key: str, before: str, *, is_started: bool) -> bool:
        """Let the step ``before`` wait for the step ``key``. Return True if ``key`` is new to the plan."""
        is_new = not is_started and self._find(key) is None
        if is_new:
            self.save()  # an earlier step of the same key may still have its row
            self._steps[key] = steps.add(self._tx, self._stack_id, key)
        steps.hold(self._tx, self._stack_id, key, before)
        return is_new

    def start(self, key: str) -> None:
        """Remove a step that waits for a report, which its resource remembers."""
        if self._steps.get(key) is not None:  # a row that was not read belongs to no step that can start
            self._started.append(key)
        self._steps[key] = None

    def pause(self, key: str) -> None:
        """Pause a step before its start."""
        step = self._find(key)
        assert step is not None, key
        self._steps[key] = steps.pause(self._tx, step)

    def end(self, key: str) -> list[str]:
        """End a step. Return the keys of steps that waited only for this one."""
        self.start(key)
        return self._remember(steps.release(self._tx, self._stack_id, key))

    def save(self) -> None:
        """Write what has changed."""
        steps.delete_all(self._tx, self._stack_id, self._started)
        self._started = []

    def _remember(self, ready: list[Step]) -> list[str]:
        self._steps |= {step.key: step for step in ready}
        return [step.key for step in ready]

    def _find(self, key: str) -> Step | None:
        if key not in self._steps:
            self._steps[key] = steps.get(self._tx, self._stack_id, key)
        return self._steps[key]


def backward(outdated: Iterable[Resource]) -> Mapping[str, Collection[str]]:
    """Return the order of the cleanup phase, by resource id: each resource after those that require it."""
    listed = list(outdated)
    after: dict[str, list[str]] = {resource.id: [] for resource in listed}
    for resource in listed:
        for id in resource.requires.values():
            if id in after:
                after[id].append(resource.id)
    return after


def forward(present: Iterable[Resource]) -> Mapping[str, Collection[str]]:
    """Return the order of the action phase, by resource id: each resource after its requirements."""
    return {resource.id: [id for id in resource.requires.values() if id is not None] for resource in present}


class NewPlan(Plan):
    """A plan of this transaction, in memory. ``needs``: for each key, those that must end before, if planned."""

    def __init__(
        self, tx: Tx, stack_id: str, needs: Mapping[str, Collection[str]], definitions: Mapping[str, Mapping[str, Any]]
    ) -> None:
        super().__init__(tx, stack_id)
        #: Of each step that has not ended, the number of those that must end before.
        self._waiting: dict[str, int] = {}
        self._dependents: dict[str, list[str]] = {}
        for key, needed in needs.items():
            self._add(key, definitions.get(key))
            for need in needs.keys() & set(needed):
                self._dependents.setdefault(need, []).append(key)
                self._waiting[key] += 1

    def __len__(self) -> int:
        return len(self._waiting)

    def unsaved_definitions(self) -> Mapping[str, Mapping[str, Any]]:
        return {key: step.definition for key, step in self._steps.items() if step is not None and step.definition}

    def ready(self, limit: int) -> list[str]:
        ready = (key for key, waiting in self._waiting.items() if waiting == 0)
        return [key for key in ready if self.state(key) is StepState.WAITING][:limit]

    def insert(self, key: str, before: str, *, is_started: bool) -> bool:
        is_new = key not in self._waiting
        if is_new:
            self._add(key, None)
            self._dependents[key] = []
        if before not in self._dependents[key]:
            self._dependents[key].append(before)
            self._waiting[before] += 1
        return is_new

    def start(self, key: str) -> None:
        self._steps[key] = None

    def pause(self, key: str) -> None:
        step = self._steps[key]
        assert step is not None, key
        self._steps[key] = replace(step, state=StepState.PAUSED)

    def end(self, key: str) -> list[str]:
        del self._waiting[key], self._steps[key]
        freed = []
        for dependent in self._dependents.get(key, ()):
            self._waiting[dependent] -= 1
            if self._waiting[dependent] == 0:
                freed.append(dependent)
        return freed

    def save(self) -> None:
        """Write the steps that have not started. Call this only once: later transactions work on the stored rows."""
        left = [replace(step, waiting=self._waiting[key]) for key, step in self._steps.items() if step is not None]
        needs = [
            (self._stack_id, need, key)
            for need, dependents in self._dependents.items()
            if need in self._waiting
            for key in dependents
        ]
        steps.add_all(self._tx, left, needs)

    def _add(self, key: str, definition: Mapping[str, Any] | None) -> None:
        self._waiting[key] = 0
        self._steps[key] = Step(
            stack_id=self._stack_id, key=key, waiting=0, state=StepState.WAITING, definition=definition
        )

    def _find(self, key: str) -> Step | None:
        return self._steps.get(key)
