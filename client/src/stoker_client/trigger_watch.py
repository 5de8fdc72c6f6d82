"""Watches a trigger until it ends, names its targets, and reads their logs."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator

from stoker_client.adhoc import exit_code_of
from stoker_client.client import Client
from stoker_client.errors import NotFound
from stoker_client.shapes import Target, Trigger, TriggerLog
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


class TargetLabels:
    """
    Names a target by its server; if the server has several targets, as ``server/resource``, after the resource whose
    deployment the target repeats.
    """

    def __init__(self, targets: Iterable[Target] = ()) -> None:
        self._targets_of_server: Counter[str] = Counter()
        for target in targets:
            self.add(target)

    def add(self, target: Target) -> None:
        """Add a target that was not added before."""
        self._targets_of_server[target["server_id"]] += 1

    def of(self, target: Target | TriggerLog) -> str:
        """Return the name of a target, or of the target whose run has written a log chunk."""
        server = target.get("server_name") or target["server_id"]
        if self._targets_of_server[target["server_id"]] < 2:
            return server
        return f"{server}/{target.get('resource_name') or target.get('name') or ''}".rstrip("/")


def read_written(client: Client, targets: Iterable[Target]) -> Iterator[TriggerLog]:
    """Yield the log so far, server by server."""
    for target in targets:
        if not target.get("deployment_id"):
            continue  # the run has not begun
        whose = {key: target.get(key) for key in ("server_id", "server_name", "resource_name")}
        try:
            for chunk in client.deployments.logs(str(target.get("deployment_id"))):
                yield {**whose, **chunk}  # type: ignore[typeddict-item]  # mypy does not join TypedDicts
        except NotFound:
            continue  # the deployment was deleted meanwhile


def follow_written(client: Client, id_: str) -> Iterator[TriggerLog]:
    """Yield the log so far and new chunks until the trigger ends."""
    for event in client.triggers.events(id_):
        if event.name == "log":
            yield event.json()
