"""The triggers API, a Stoker extension: runs an action or a config on servers; and the watch of a trigger."""

from __future__ import annotations

from collections import Counter, deque
from collections.abc import Iterable, Iterator, Sequence
from typing import TYPE_CHECKING, Any

from stoker_client.collection import Anything, RunCollection, choose, is_id, iterate_pages, part
from stoker_client.errors import NotFound
from stoker_client.results import exit_code
from stoker_client.shapes import LogChunk, OutputGroup, Target, Trigger
from stoker_client.stacks import Stacks

if TYPE_CHECKING:
    from stoker_client.deployments import Deployments
    from stoker_client.wire import Wire

RUNNING, COMPLETE = "IN_PROGRESS", "COMPLETE"
STATUSES = (RUNNING, COMPLETE, "FAILED", "CANCELLED")
# compact targets in one answer
_PAGE = 10_000
# columns of lists
COLUMNS = ("id", "name", "action", "status", "total", "complete", "failed", "changed", "requested_by", "creation_time")


class TriggerLog(LogChunk):
    """A log chunk with its server, and the resource whose deployment the run repeats."""

    server_id: str
    server_name: str | None
    resource_name: str | None


def body(**fields: Any) -> dict[str, Any]:
    """Return the body of a trigger request without the arguments that are unset."""
    return {name: value for name, value in fields.items() if value not in (None, [], {})}


class Triggers(RunCollection[Trigger]):
    """Triggers, newest first. A name means the last retry of its trigger."""

    def __init__(self, wire: Wire) -> None:
        super().__init__(wire, "/software_triggers", "trigger", key="software_trigger", has_pages=True)

    def all(self, *, limit: int | None = None, stack: str | None = None, **query: Any) -> list[Trigger]:
        """
        Return the triggers of the project, or of one stack, newest first.

        Filters: ``status``, ``requested_by``, and ``contains``, a part of the name.
        """
        stack = None if stack is None else Stacks(self.wire).resolvable(stack)
        return super().all(limit=limit, stack=stack, **query)

    def find_id(self, ref: str) -> str:
        """Return the id of a trigger. Raises NotFound or Ambiguous."""
        if is_id(ref):
            return ref
        listed = self.all()
        named = _without_retried([trigger for trigger in listed if trigger.get("name") == ref])
        return choose(named or listed, ref, "trigger")["id"]

    def show(self, ref: str, *, patient: bool = False, **_: object) -> Trigger:
        """Return one trigger with all of its servers under ``targets``."""
        path = self._path_of(self.find_id(ref))
        trigger = self._one(self.wire.get(path, patient=patient))
        targets = trigger.get("targets") or []
        while targets and len(targets) < trigger["total"]:  # the answer contains the first ones
            query = {"marker": targets[-1]["position"]}
            page = part(self.wire.get(f"{path}/targets", query, patient=patient), "targets")
            if not page:
                break
            targets += page
        return trigger

    def targets(self, ref: str, *, status: str | None = None) -> list[Anything]:
        """Return the states of a trigger's servers, in its order, without the values of their runs."""
        path = f"{self._path_of(self.find_id(ref))}/targets/compact"
        return list(iterate_pages(self.wire, path, "targets", {"status": status}, _PAGE, id_key="position"))

    def output_groups(self, ref: str, *, status: str | None = None) -> tuple[list[OutputGroup], int]:
        """Return the largest groups of servers with equal output and exit code, and the number of all groups."""
        answer = self._at(ref, lambda path: self.wire.get(f"{path}/output_groups", {"status": status}))
        return part(answer, "output_groups"), part(answer, "total")

    def retry(self, id_: str, *, only_failed: bool = True) -> Trigger:
        """Create the same trigger again, for the servers on which it failed or was cancelled, or for all."""
        return self._one(self._act(id_, "retry", {"only_failed": only_failed}))


def _without_retried(triggers: Sequence[Trigger]) -> list[Trigger]:
    """Return the newest trigger of each chain of retries. ``triggers`` have the same name, and the newest is first."""
    earlier = {trigger["id"]: (trigger.get("source") or {}).get("retry_of") for trigger in triggers}

    def first(id_: str) -> str:
        while following := earlier.get(id_):
            id_ = following
        return id_

    newest: dict[str, Trigger] = {}
    for trigger in triggers:
        newest.setdefault(first(trigger["id"]), trigger)
    return list(newest.values())


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
        for event in self._triggers.events(self._id):
            if event.name == "target":
                target: Target = event.data
                if self.learn(target):
                    yield target, None
            elif event.name == "trigger":
                self.trigger = {**self.trigger, **event.data}
                yield None, None
            elif event.name == "log":
                yield None, event.data
        yield from self._all()

    def logs(self) -> Iterator[TriggerLog]:
        """Yield the output until the trigger ends; then store the end of the trigger, and of all targets."""
        yield from self._triggers.follow_logs(self._id)
        deque(self._all(), maxlen=0)

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
    return exit_code(target["status"], code)


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


def read_logs(deployments: Deployments, targets: Iterable[Target]) -> Iterator[TriggerLog]:
    """Yield the log so far, server by server."""
    for target in targets:
        if not target.get("deployment_id"):
            continue  # the run has not begun
        whose = {key: target.get(key) for key in ("server_id", "server_name", "resource_name")}
        try:
            for chunk in deployments.logs(str(target.get("deployment_id"))):
                yield {**whose, **chunk}  # type: ignore[typeddict-item]  # mypy does not join TypedDicts
        except NotFound:
            continue  # the deployment was deleted meanwhile
