"""A whole orchestration without HTTP: a store, the engine, held jobs, and signals given by hand."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any
from uuid import uuid4

from stoker import resources, transports
from stoker.deployments.policy import PROJECT
from stoker.external.heats import Heats
from stoker.identity.signal_tokens import SignalTokens
from stoker.identity.stack_users import StackUsers
from stoker.lodgings import EmbeddedMessaging, EmbeddedObjects, EmbeddedQueues, SiteKey
from stoker.messaging import Messaging, SignedUrls
from stoker.messaging.signed_urls import for_agents
from stoker.messaging.subscribing import Subscribing
from stoker.model.deployment import Deployment
from stoker.model.stack import Resource, Stack
from stoker.model.status import Action
from stoker.objects import Objects
from stoker.resources.services import Owner, Services
from stoker.site import ThisSite
from stoker.stacks import closing, jobs, nested, operations, outputs, signals
from stoker.stacks.engine import ADVANCE, Engine, Limits
from stoker.stacks.operations import Options
from stoker.stacks.prepare import Handed, Identity, prepare, prepare_change
from stoker.store import deployments, events, stacks
from stoker.store import resources as stored
from stoker.store.open import Store
from stoker.store.tx import Tx
from stoker.transports.base import Objects as ObjectsPort
from stoker.work import Work
from support.work import HeldWork


def signal_named(tx: Tx, engine: Engine, stack: Stack, name: str, said: Mapping[str, Any]) -> None:
    target = signals.addressed(tx, stack, name)
    assert target is not None, name
    signals.signal_resource(tx, engine, stack, target, said)


def site(store: Store, work: Work, objects: Callable[[Work], ObjectsPort] | None = None) -> ThisSite:
    urls = SignedUrls(b"secret")
    messaging = Messaging(work, Subscribing(work, urls, "http://stoker.test", confirming=False))
    embedded = EmbeddedObjects(Objects(store, work), SiteKey(b"secret"), "http://stoker.test")
    asked_for = EmbeddedMessaging(messaging, urls, "http://stoker.test")
    own = EmbeddedQueues(messaging, for_agents(b"secret"), "http://stoker.test")
    return ThisSite(
        "http://stoker.test",
        StackUsers(b"secret"),
        objects(work) if objects else embedded,
        own,
        asked_for,
        identity_url="http://stoker.test/identity",
    )


class Machines:
    """A compute provider whose servers are there as soon as they are asked for, when the test says so."""

    def __init__(self) -> None:
        self.asked: dict[str, Owner] = {}

    def create(self, tx: Tx, *, server_id: str, project_id: str, name: str, owner: Owner) -> None:
        self.asked[server_id] = owner

    def delete(self, tx: Tx, server_id: str) -> None:
        self.asked.pop(server_id, None)

    def address(self, server_id: str) -> str:
        return "192.0.2.1"


@dataclass
class World:
    store: Store
    engine: Engine
    work: HeldWork
    machines: Machines
    project: str = "p"

    def create(self, template: Any, name: str = "s", options: Options | None = None, **handed: Any) -> Stack:
        identity = Identity(str(uuid4()), name, self.project)
        prepared = prepare(self.engine, Handed(template=template, **handed), identity)
        self.store.write(
            lambda tx: operations.create(tx, self.engine, prepared, options or Options(), identity, username="u")
        )
        return self.settled(identity.stack_id)

    def update(self, stack: Stack, template: Any, options: Options | None = None, **handed: Any) -> Stack:
        identity = Identity(stack.id, stack.name, self.project)
        prepared = prepare(self.engine, Handed(template=template, **handed), identity)
        self.store.write(lambda tx: operations.update(tx, self.engine, stack.id, prepared, options or Options()))
        return self.settled(stack.id)

    def change(self, stack: Stack, clear: tuple[str, ...] = (), **handed: Any) -> Stack:
        identity = Identity(stack.id, stack.name, self.project)
        with self.store.read() as tx:
            source = stacks.source(tx, stack.id)
        prepared = prepare_change(self.engine, Handed(**handed), identity, source, clear)
        self.store.write(lambda tx: operations.update(tx, self.engine, stack.id, prepared, Options()))
        return self.settled(stack.id)

    def delete(self, stack: Stack) -> Stack:
        self.store.write(lambda tx: operations.delete(tx, self.engine, stack.id))
        return self.settled(stack.id)

    def visit(self, stack: Stack, action: Action) -> Stack:
        self.store.write(lambda tx: operations.visit(tx, self.engine, stack.id, action))
        return self.settled(stack.id)

    def settled(self, stack_id: str) -> Stack:
        """The stack once plans too large for one transaction have gone on."""
        self.work.run(ADVANCE)
        with self.store.read() as tx:
            return stacks.get(tx, stack_id)

    def signal(self, stack: Stack, name: str, **values: Any) -> Stack:
        said = {"deploy_stdout": "", "deploy_stderr": "", "deploy_status_code": 0, **values}
        self.store.write(lambda tx: signal_named(tx, self.engine, stack, name, said))
        return self.settled(stack.id)

    def report(self, deployment: Deployment, **values: Any) -> None:
        """An agent's own report of a run."""
        said = {"deploy_stdout": "", "deploy_stderr": "", "deploy_status_code": 0, **values}
        self.store.write(
            lambda tx: signals.signal_run(
                tx, self.engine, server_id=deployment.server_id, config_id=deployment.config_id, values=said
            )
        )
        self.work.run(ADVANCE)

    def signal_all(self, stack: Stack, **values: Any) -> Stack:
        """Answer everything that waits, until nothing does."""
        while waiting := [
            n for n, s in self.states(stack).items() if s in ("CREATE_IN_PROGRESS", "UPDATE_IN_PROGRESS")
        ]:
            for name in waiting:
                self.signal(stack, name, **values)
        return self.settled(stack.id)

    def started(self, stack: Stack) -> Stack:
        """Every machine asked for is there."""
        for owner in list(self.machines.asked.values()):
            self.store.write(lambda tx, id=owner.resource_id: closing.wake_resource(tx, self.engine, id))
        return self.settled(stack.id)

    def resources(self, stack: Stack) -> dict[str, Resource]:
        with self.store.read() as tx:
            return {each.name: each for each in stored.of_stack(tx, stack.id) if each.current}

    def leftovers(self, stack: Stack) -> list[Resource]:
        with self.store.read() as tx:
            return stored.leftover(tx, stack.id)

    def states(self, stack: Stack) -> dict[str, str]:
        return {name: f"{each.action}_{each.status}" for name, each in self.resources(stack).items()}

    def outputs(self, stack: Stack) -> dict[str, Any]:
        with self.store.read() as tx:
            found = outputs.all_values(tx, self.engine, stacks.get(tx, stack.id))
        return {each["output_key"]: each["output_value"] for each in found}

    def events(self, stack: Stack) -> list[tuple[str, str]]:
        with self.store.read() as tx:
            found = events.listed(tx, [stack.id], equal={}, limit=None, marker=None, descending=False)
        return [(each.resource_name, f"{each.action}_{each.status}") for each in found]

    def deployments(self) -> list[Any]:
        with self.store.read() as tx:
            return deployments.listed(tx, self.project)

    def to_run(self, server_id: str) -> list[tuple[str, str]]:
        with self.store.read() as tx:
            return [(id, body) for id, body, _ in deployments.to_run(tx, server_id)]


def world(
    store: Store,
    *,
    steps: int = 500,
    limits: Mapping[str, int] | None = None,
    deployment_policy: str = PROJECT,
    objects: Callable[[Work], ObjectsPort] | None = None,
) -> World:
    """``objects``: instead of those of an embedded object store."""
    work, machines = HeldWork(), Machines()
    services = Services(
        transports.load().with_defaults("STOKER_SIGNAL", "STOKER_PUSH"),
        work,
        machines,
        SignalTokens(b"secret"),
        site(store, work, objects),
        Heats("http://stoker.test", "RegionOne", {}, lambda _: None),
        deployment_policy=deployment_policy,
    )
    engine = nested.engine(resources.load(), services, Limits(steps_per_transaction=steps, **(limits or {})))
    jobs.register(store, engine)
    return World(store, engine, work, machines)
