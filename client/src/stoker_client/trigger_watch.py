"""Watches a trigger until it ends."""

from __future__ import annotations

from collections.abc import Iterator

from stoker_client.adhoc import exit_code_of
from stoker_client.shapes import Target, Trigger, TriggerLog
from stoker_client.target_labels import TargetLabels
from stoker_client.triggers import RUNNING, Triggers

COMPLETE = "COMPLETE"


class Watch:
    """The state of a trigger, updated while ``changes`` is consumed."""

    def __init__(self, triggers: Triggers, id_: str) -> None:
        self._triggers = triggers
        self._id = id_
        self.trigger: Trigger = {"id": id_, "status": RUNNING}
        self.labels = TargetLabels()
        self._targets: dict[int, Target] = {}

    @property
    def targets(self) -> list[Target]:
        """All targets, in the trigger's order."""
        return list(self._targets.values())

    def learn(self, target: Target) -> bool:
        """Store the state of a target. Return whether it changed."""
        before = self._targets.get(target["position"])
        if before is None:
            self.labels.add(target)
        self._targets[target["position"]] = target
        return before != target

    def changes(self) -> Iterator[tuple[Target | None, TriggerLog | None]]:
        """
        Yield each change after it is stored in ``trigger`` and ``targets``.

        A pair holds the changed server or a log chunk; a pair of None means that the trigger changed. All servers are
        yielded at the beginning, and those that changed since the last event at the end.
        """
        yield from self._all()
        if self.trigger["status"] == RUNNING:
            for event in self._triggers.events(self._id):
                if event.name == "target":
                    target: Target = event.json()
                    if self.learn(target):
                        yield target, None
                elif event.name == "trigger":
                    self.trigger = {**self.trigger, **event.json()}
                    yield None, None
                elif event.name == "log":
                    yield None, event.json()
            yield from self._all()

    def _all(self) -> Iterator[tuple[Target | None, TriggerLog | None]]:
        trigger = self._triggers.show(self._id, patient=True)
        targets = trigger.pop("targets", [])
        self.trigger = trigger
        changed = [target for target in targets if self.learn(target)]  # all are known before the first is shown
        for target in changed:
            yield target, None
        yield None, None

    @property
    def exit_code(self) -> int:
        """The highest exit code of the runs, and at least 1 unless the trigger is complete."""
        worst = max((target_code(target) for target in self._targets.values()), default=0)
        return worst or (0 if self.trigger["status"] == COMPLETE else 1)


def target_code(target: Target) -> int:
    """Return the exit code for the result of one server."""
    run = target.get("run") or {}
    code = run.get("status_code")
    if code is None:
        code = (run.get("output_values") or {}).get("deploy_status_code")
    return exit_code_of(target["status"], code)
