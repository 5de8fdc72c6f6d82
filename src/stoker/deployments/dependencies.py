"""The order of runs on one server: the option ``depends_on`` of their configs."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any

from stoker.deployments import run_options
from stoker.deployments.derive import DEPLOY_PREFIX
from stoker.model.config import Config
from stoker.model.errors import Invalid
from stoker.store import deployments, rows
from stoker.store.tx import Tx

_STACK, _RESOURCE = f"{DEPLOY_PREFIX}stack_id", f"{DEPLOY_PREFIX}resource_name"


@dataclass(frozen=True, slots=True)
class _Run:
    """A run in a server's document. The agent's ``stoker_agent.dependencies`` has the same rule for names."""

    name: str | None
    depends_on: tuple[str, ...]
    stack: Any
    resource: Any

    @classmethod
    def of(cls, name: str | None, options: Mapping[str, Any], inputs: Iterable[Mapping[str, Any]]) -> _Run:
        values = {entry["name"]: entry.get("value") for entry in inputs if entry["name"] in (_STACK, _RESOURCE)}
        return cls(name, run_options.depends_on(options), values.get(_STACK), values.get(_RESOURCE))

    @property
    def label(self) -> str:
        """The name of the run for people."""
        return str(self.resource or self.name)

    def waits_for(self, other: _Run) -> bool:
        """Whether the other run has one of the names: its own, or that of its resource in the same stack."""
        is_in_stack = other.stack is not None and other.stack == self.stack
        return other.name in self.depends_on or (is_in_stack and other.resource in self.depends_on)


def list_pending(tx: Tx, config: Config, server_id: str, deployment_id: str) -> tuple[str, ...]:
    """
    Return the names of the pending runs on the server for which a new run of ``config`` waits.

    Runs of the deployment ``deployment_id`` are not among them, because the new run supersedes them.

    Raises Invalid if these runs also wait for the new one.
    """
    new = _Run.of(config.name, config.options, config.inputs)
    if not new.depends_on:
        return ()
    if new.waits_for(new):
        raise Invalid(f"The option depends_on of {config.name!r} names this deployment itself.")
    # only runs that apply a config are in an order
    runs = [run for run in deployments.to_run(tx, server_id) if run.mode is None and run.deployment_id != deployment_id]
    bodies = [rows.load(run.body) for run in runs]
    pending = [_Run.of(body["name"], body["options"], body["inputs"]) for body in bodies]
    path = _find_path(new, new, pending, [])
    if path is not None:
        names = " → ".join(run.label for run in (new, *path))
        raise Invalid(f"The option depends_on forms a cycle on this server: {names}. Remove one of these dependencies.")
    return tuple(run.label for run in pending if new.waits_for(run))


def _find_path(start: _Run, target: _Run, pending: list[_Run], visited: list[_Run]) -> list[_Run] | None:
    """Return the runs from ``start`` to ``target``, along what each waits for, or None."""
    for run in pending:
        if run in visited or not start.waits_for(run):
            continue
        if run.waits_for(target):
            return [run, target]
        path = _find_path(run, target, pending, [*visited, run])
        if path is not None:
            return [run, *path]
    return None
