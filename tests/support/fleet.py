"""Servers without agents, and triggers on them, in an engine without HTTP."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any
from uuid import uuid4

from stoker.deployments.configs import new_config
from stoker.json_values import convert
from stoker.model.deployment import Deployment
from stoker.model.server import Kind, Server
from stoker.model.trigger import Schedule, Target, TargetStatus, Trigger
from stoker.stacks import repetition
from stoker.store import deployments, servers, targets, triggers
from stoker.triggers import creation, lifecycle, schedules
from stoker.triggers.lifecycle import GO_ON
from stoker.triggers.request import ScheduleRequest, parse
from support.deployments import deliver
from support.stacks import World
from support.templates import define

COMPONENT: Mapping[str, Any] = define(
    "OS::Heat::SoftwareComponent",
    inputs=[{"name": "target", "default": "disk"}, {"name": "password", "default": "x"}],
    outputs=[{"name": "size"}],
    configs=[
        {"actions": ["CREATE", "UPDATE"], "config": "install", "tool": "script"},
        {"actions": ["BACKUP", "VERIFY"], "config": "backup", "tool": "script"},
    ],
)
COUNTS = ("queued", "running", "complete", "failed", "cancelled")


@dataclass
class Fleet:
    """Shortcuts for servers, triggers and their targets in a ``World``."""

    world: World

    def servers(self, count: int, labels: Mapping[str, str] | None = None, **more: Any) -> list[Server]:
        """Add ``count`` enrolled servers."""
        return self.enroll(*(f"s{number}-{uuid4().hex[:6]}" for number in range(count)), labels=labels, **more)

    def enroll(self, *names: str, **more: Any) -> list[Server]:
        """Add enrolled servers of these names."""
        added = [self.server(name, **more) for name in names]
        self.world.store.write(lambda tx: [servers.add(tx, server) for server in added])
        return added

    def server(self, name: str, labels: Mapping[str, str] | None = None, **more: Any) -> Server:
        """Return an enrolled server that is not stored yet."""
        values = {"id": str(uuid4()), "project_id": self.world.project, "kind": Kind.ENROLLED, "key_generation": 1}
        with self.world.store.read() as tx:
            return Server(**{**values, "name": name, "labels": labels or {}, "created_at": tx.now, **more})

    def config(self, **said: Any) -> str:
        """Add a config and return its id."""
        said = {"name": "job", "group": "script", "config": "true", **said}
        config, _ = self.world.store.write(lambda tx: new_config(tx, self.world.project, **said))
        return config.id

    def trigger(self, requested_by: str = "ann", **said: Any) -> Trigger:
        """Start a trigger; ``said`` is the body of its request."""
        asked = parse(said)
        trigger = self.world.store.write(
            lambda tx: creation.create(tx, self.world.engine, self.world.project, asked, requested_by=requested_by)
        )
        self.world.work.run(GO_ON)
        return self.now(trigger)

    def trigger_on(self, *on: Server, config: Mapping[str, Any] | None = None, **options: Any) -> Trigger:
        """Start a trigger of a new config on these servers."""
        ids = [server.id for server in on]
        return self.trigger(config_id=self.config(**(config or {})), servers=ids, **options)

    def trigger_over(self, count: int, **options: Any) -> Trigger:
        """Start a trigger of a new config on so many new servers."""
        return self.trigger_on(*self.servers(count), **options)

    def schedule(self, **said: Any) -> Schedule:
        """Create a schedule; ``said`` is the body of its request."""
        asked, world = convert(said, ScheduleRequest, "the schedule"), self.world
        return world.store.write(
            lambda tx: schedules.create(tx, world.engine, world.project, asked, requested_by="ann")
        )

    def now(self, trigger: Trigger) -> Trigger:
        """Return the current state of a trigger."""
        return self.world.read(triggers.get, trigger.id)

    def targets(self, trigger: Trigger) -> list[Target]:
        """Return the targets of a trigger."""
        return self.world.read(targets.of_trigger, trigger.id)

    def running(self, trigger: Trigger) -> list[Deployment]:
        """Return the deployments of targets in progress."""
        with self.world.store.read() as tx:
            stored_targets = targets.of_trigger(tx, trigger.id)
            return [
                deployments.get(tx, target.deployment_id)
                for target in stored_targets
                if target.status == TargetStatus.IN_PROGRESS
            ]

    def deployment(self, target: Target) -> Deployment:
        """Return the deployment of a target."""
        return self.world.read(deployments.get, target.deployment_id or "")

    def end(self, deployment: Deployment, code: int = 0, **values: Any) -> None:
        """Report a result and run the jobs that continue triggers."""
        self.world.report(deployment, deploy_status_code=code, **values)
        self.world.work.run(GO_ON)

    def deliver(self, deployment: Deployment) -> None:
        """Record that the agent has received the run."""
        deliver(self.world.store, deployment)

    def cancel(self, trigger: Trigger, *, force: bool = False) -> Trigger:
        """Cancel a trigger and run the jobs that continue it."""

        def do(tx: Any) -> None:
            locked = triggers.get(tx, trigger.id, for_update=True)
            lifecycle.cancel(tx, self.world.engine.env, locked, "bob", force=force)

        self.world.store.write(do)
        self.world.work.run(GO_ON)
        return self.now(trigger)

    def delete(self, trigger: Trigger) -> None:
        self.world.store.write(
            lambda tx: lifecycle.delete(tx, self.world.engine.env, triggers.get(tx, trigger.id, for_update=True))
        )

    def again(self, trigger: Trigger, *, only_failed: bool = True) -> Trigger:
        """Retry a trigger."""
        retried = self.world.store.write(
            lambda tx: creation.retry(
                tx, self.world.engine, triggers.get(tx, trigger.id), only_failed=only_failed, requested_by="bob"
            )
        )
        self.world.work.run(GO_ON)
        return self.now(retried)

    def do(self, deed: Any, deployment: Deployment, *more: Any, **said: Any) -> Any:
        """Run a function of ``deployments.service``."""
        return self.world.store.write(
            lambda tx: deed(tx, self.world.engine.env, deployments.get(tx, deployment.id), *more, **said)
        )

    def retry(self, deployment: Deployment) -> Deployment:
        """Retry a deployment."""
        return self.world.store.write(
            lambda tx: repetition.retry(tx, self.world.engine, deployments.get(tx, deployment.id), "bob")
        )

    def exact(self, trigger: Trigger) -> dict[str, int]:
        """
        Return the trigger's counts. Assert that its targets confirm them, and that running targets have active
        deployments.
        """
        current, servers = self.now(trigger), self.targets(trigger)
        counted = counts(current)
        names = {"IN_PROGRESS": "running"}
        seen = [names.get(target.status, target.status.lower()) for target in servers]
        assert counted == {name: seen.count(name) for name in COUNTS}
        assert sum(counted.values()) == current.total == len(servers)
        with self.world.store.read() as tx:
            for target in servers:
                deployment = deployments.find(tx, target.deployment_id) if target.deployment_id else None
                assert (deployment is not None and deployment.status == "IN_PROGRESS") is (
                    target.status == "IN_PROGRESS"
                ), target
        assert (current.ended_at is None) is (current.status == "IN_PROGRESS")
        assert (current.status == "IN_PROGRESS") is bool(counted["queued"] + counted["running"])
        return counted


def counts(trigger: Trigger) -> dict[str, int]:
    return {name: getattr(trigger, name) for name in COUNTS}


def names(found: Iterable[Server]) -> list[str]:
    return [target.name for target in found]
