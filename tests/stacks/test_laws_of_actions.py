"""Whatever operations, results and cancellations come, in any order: docs/actions.md holds, and nothing hangs."""

from __future__ import annotations

import random
from typing import Any

import pytest

from stoker.deployments import service
from stoker.model.deployment import Deployment
from stoker.model.errors import StokerError
from stoker.model.stack import Action, Stack
from stoker.stacks import operations, repetition, signals
from stoker.stacks.operations import Options
from stoker.store import resources, stacks
from stoker.store.open import Store
from support.fleet import Fleet
from support.search import examples
from support.stacks import Users, World, tell, world
from support.templates import HANDLE, LIVE, define, template, wait

pytestmark = pytest.mark.slow

ACTIONS = ["CREATE", "UPDATE", "DELETE", "SUSPEND", "RESUME"]
INPUTS = [{"name": "v"}, {"name": "w", "replace_on_change": True}]
CONFIG = define("OS::Heat::SoftwareConfig", group="script", config="echo", inputs=INPUTS)
HOOKS = ["pre-create", "post-create", "pre-update", "post-update", "pre-delete"]


class Life:
    """One stack on two servers, with random operations and results, whose agents' users exist some time later."""

    def __init__(self, heat: World, users: Users, seed: int) -> None:
        self.heat = heat
        self.users = users
        self.random = random.Random(seed)
        self.servers = [server.id for server in Fleet(heat).servers(2)]
        self.value = 0
        #: The actions of each place (name and server) in the order of their ends, and whether each succeeded.
        self.trace: dict[tuple[str, str], list[tuple[str, bool]]] = {}
        self.operations: list[str] = []
        self.stack: Stack | None = None

    def template(self) -> dict[str, Any]:
        self.value += 1

        def deployment(*after: str) -> dict[str, Any]:
            properties = {
                "config": {"get_resource": "config"},
                "server": self.random.choice([*self.servers, *self.servers, LIVE]),
                "actions": ACTIONS,
                "input_values": {"v": self.value, "w": self.random.choice(["same", "same", LIVE])},
                "signal_transport": self.random.choice(["STOKER_SIGNAL", "STOKER_SIGNAL", "HEAT_SIGNAL"]),
            }
            return define("OS::Heat::SoftwareDeployment", **properties) | {"depends_on": list(after)}

        first = self.random.choice(["a", "a", "a", "renamed"])
        resources = {"config": CONFIG, "handle": HANDLE, "wait": wait(), first: deployment()}
        if self.random.random() < 0.7:
            resources["b"] = deployment(first)
        if self.random.random() < 0.4:
            resources["c"] = deployment()
        written = {name: one["properties"] for name, one in resources.items() if name in ("a", "renamed", "b", "c")}
        places = {
            name: "live" if one["server"] is LIVE else self.servers.index(one["server"])
            for name, one in written.items()
        }
        replaced = [name for name, one in written.items() if one["input_values"]["w"] is LIVE]
        self.operations.append(f"template {self.value}: {places}, replaced by the live value: {replaced}")
        return template(resources)

    def environment(self) -> dict[str, Any]:
        hooked = [name for name in ("a", "b") if self.random.random() < 0.15]
        hooks = {name: {"hooks": self.random.choice(HOOKS)} for name in hooked}
        self.operations.append(f"hooks {hooks}")
        return {"resource_registry": {"resources": hooks}}

    def pending(self) -> list[tuple[Deployment, str, str]]:
        """Return (deployment, action, resource name) of the runs in the documents, in their order."""
        return [
            (deployment, inputs["deploy_action"], inputs["deploy_resource_name"])
            for server in self.servers
            for deployment, inputs in self.heat.pending(server)
        ]

    def report(self, *, succeeds: bool) -> None:
        """Complete or fail a pending run; each server runs its own in order."""
        waiting = self.pending()
        if not waiting:
            return
        server = self.random.choice(waiting)[0].server_id
        deployment, action, name = next(one for one in waiting if one[0].server_id == server)
        self.check(action, name, server)
        self.trace.setdefault((name, server), []).append((action, succeeds))
        place = f"{name} on {self.servers.index(server)}"
        self.operations.append(f"{action} of {place} {'succeeds' if succeeds else 'fails'}")
        self.heat.report(deployment, deploy_status_code=0 if succeeds else 1)

    def check(self, action: str, name: str, server: str) -> None:
        if action != "UPDATE":
            return
        before = self.trace.get((name, server), [])
        since = before[max((place + 1 for place, (ran, _) in enumerate(before) if ran == "DELETE"), default=0) :]
        assert ("CREATE", True) in since, self.describe()

    def operate(self) -> None:
        """Run a random operation. A refused one changes nothing."""
        kind = self.random.random()
        try:
            if self.stack is None:
                self.operations.append("create")
                environment = self.environment()
                self.stack = self.heat.create(
                    self.template(), f"s{self.value}", self.options(), environment=environment
                )
                self.signal_live()
            elif kind < 0.6:
                self.operations.append("update")
                environment = self.environment()
                self.stack = self.heat.update(self.stack, self.template(), self.options(), environment=environment)
            elif kind < 0.75:
                action = self.random.choice([Action.SUSPEND, Action.RESUME, Action.RESUME, Action.CHECK])
                self.operations.append(action.lower())
                self.write(lambda tx: operations.run_action(tx, self.heat.engine, self.id, action))
            elif kind < 0.8:
                self.operations.append("cancel")
                rollback = self.random.random() < 0.5
                self.write(lambda tx: operations.cancel(tx, self.heat.engine, self.id, rollback=rollback))
            elif kind < 0.88:
                self.touch()
            elif kind < 0.93:
                self.signal_live()
            elif kind < 0.95:
                self.clear_hooks()
            elif kind < 0.98:
                self.settle_users("no rights" if self.random.random() < 0.3 else None)
            else:
                self.operations.append("delete")
                self.write(lambda tx: operations.delete(tx, self.heat.engine, self.id))
        except StokerError as error:
            self.operations.append(f"refused: {error.message}")

    @property
    def id(self) -> str:
        assert self.stack is not None
        return self.stack.id

    def options(self) -> Options:
        return Options(disable_rollback=self.random.random() < 0.5)

    def touch(self) -> None:
        """Cancel or retry a deployment."""
        listed = self.heat.deployments()
        if listed:
            deployment, env = self.random.choice(listed), self.heat.engine.env
            if self.random.random() < 0.5:
                self.operations.append("cancel a run")
                self.write(lambda tx: service.cancel(tx, env, deployment, "ann", force=True))
            else:
                self.operations.append("retry")
                self.write(lambda tx: repetition.retry(tx, self.heat.engine, deployment, "ann"))

    def signal_live(self) -> None:
        if "handle" in self.heat.resources(self.stack):
            place = self.random.choice([0, 1])
            self.operations.append(f"live value: {place}")
            tell(self.heat, self.stack, "handle", id="1", data=self.servers[place])
            self.refresh()

    def settle_users(self, failure: str | None = None) -> bool:
        """Create the users that agents need, or refuse them. Return whether there was one."""
        is_needed = bool(self.users.requested)
        if is_needed:
            self.operations.append(f"users: {failure or 'created'}")
            self.users.settle(self.heat, failure)
            self.refresh()
        return is_needed

    def clear_hooks(self) -> bool:
        """Clear all breakpoints. Return whether there was one."""
        everything = self.heat.read(resources.of_stack, self.stack.id) if self.stack is not None else []
        paused = [one for one in everything if one.hook is not None]
        for one in paused:
            self.operations.append(f"clear {one.hook} of {one.name}")
            self.write(lambda tx, one=one: signals.unset_hook(tx, self.heat.engine, self.stack, one.name, one.hook))
            if self.stack is None:
                break
        return bool(paused)

    def write(self, do: Any) -> None:
        self.heat.store.write(do)
        self.refresh()

    def refresh(self) -> None:
        if self.stack is not None:
            self.stack = self.heat.read(stacks.find, self.stack.id)
        if self.stack is not None and self.stack.deleted_at is not None:
            self.stack = None

    def describe(self) -> str:
        """Return the operations so far and the state of the resources."""
        assert self.stack is not None
        everything = self.heat.read(resources.of_stack, self.stack.id)
        states = [
            f"{one.name} {one.action}_{one.status}{'' if one.current else ' (outdated)'} {one.reason}"
            for one in everything
        ]
        return "\n".join([*self.operations, f"{self.stack.action}_{self.stack.status} {self.stack.phase}", *states])

    def settle(self) -> None:
        """Complete all runs. Nothing stays in progress."""
        for _ in range(100):
            if self.stack is not None and self.heat.states(self.stack).get("wait", "").endswith("IN_PROGRESS"):
                self.signal_live()
            if not self.pending() and not self.settle_users() and not self.clear_hooks():
                break
            self.report(succeeds=True)
            self.refresh()
        self.refresh()
        if self.stack is not None:
            assert self.stack.status != "IN_PROGRESS", self.describe()
            for resource in self.heat.resources(self.stack).values():
                assert resource.status != "IN_PROGRESS", self.describe()
        for deployment in self.heat.deployments():
            assert deployment.status != "IN_PROGRESS", self.describe()
            name = next(
                (one.name for one in self.heat.resources(self.stack).values() if one.id == deployment.resource_id), None
            ) if self.stack else None  # fmt: skip
            if deployment.status == "COMPLETE" and name is not None:
                last = self.trace[name, deployment.server_id][-1]
                assert last == (deployment.action, True), f"{name}: {last}\n{self.describe()}"


@pytest.mark.parametrize("seed", range(examples(30)))
def test_the_rules_hold_after_any_operations(store: Store, seed: int) -> None:
    users = Users()
    life = Life(world(store, keystone_users=users), users, seed)
    for _ in range(60):
        if life.random.random() < 0.4:
            life.operate()
        else:
            life.report(succeeds=life.random.random() < 0.7)
        life.refresh()
        if life.random.random() < 0.05:
            life.settle()
    life.settle()
