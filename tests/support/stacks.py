"""A complete engine without HTTP: a store, manual jobs and direct signals."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, replace
from importlib.util import find_spec
from typing import Any
from uuid import uuid4

import pytest

from stoker import transports, types
from stoker.backends.provider import ProviderSite
from stoker.backends.provider import load as load_provider
from stoker.backends.remote_heat import RemoteHeatClient
from stoker.deployments import run_end
from stoker.embedded import EmbeddedObjects, EmbeddedQueues, SiteKey
from stoker.identity.stack_users import SignalTokens, StackUsers
from stoker.messaging import Messaging, SignedUrls
from stoker.messaging.subscription_service import SubscriptionService
from stoker.messaging.webhook_client import Targets
from stoker.model.artifact import Artifact, ArtifactKind
from stoker.model.config import Config
from stoker.model.deployment import Deployment, Owner, Settled
from stoker.model.errors import EntityNotFound
from stoker.model.server import ServerOwner
from stoker.model.stack import Action, Event, Resource, Stack
from stoker.policy.authorizer import DeploymentAuthorizer
from stoker.policy.rules import PROJECT, SiteDefaults
from stoker.resources.base import ResourceEnv
from stoker.servers.keys import Keys
from stoker.settings import Settings
from stoker.stacks import operations, outputs, signals
from stoker.stacks.adoption import Adoption
from stoker.stacks.engine import ADVANCE, Engine, Limits
from stoker.stacks.operations import Options
from stoker.stacks.templates.prepare import Identity, StackRequest, prepare, prepare_change
from stoker.store import artifacts, configs, deployments, documents, events, queues, rows, stacks
from stoker.store import resources as stored
from stoker.store.open import Store
from stoker.store.tx import Tx
from stoker.transports.base import Objects, Platform
from stoker.triggers import jobs as trigger_jobs
from stoker.types.nested_stacks import TemplateType
from stoker.types.planned_runs import Planner
from stoker.work import Work
from support.work import ManualWork


def signal_named(tx: Tx, engine: Engine, stack: Stack, name: str, said: Mapping[str, Any]) -> None:
    """Signal a resource by its name."""
    target = signals.find_target(tx, stack, name)
    assert target is not None, name
    signals.deliver(tx, engine, target, said)


def values(inputs: Iterable[Mapping[str, Any]]) -> dict[str, Any]:
    """Return the values of the inputs of a run by their names."""
    return {entry["name"]: entry.get("value") for entry in inputs}


def tell(heat: World, stack: Stack, name: str, **details: Any) -> None:
    """Signal a resource with ``details`` only, such as a handle of a wait condition."""
    heat.store.write(lambda tx: signal_named(tx, heat.engine, stack, name, details))


def site(store: Store, work: Work, objects: Callable[[Work], Objects] | None = None) -> Platform:
    """Return a platform with embedded services."""
    messaging = Messaging(work, SubscriptionService(Targets.of("127.0.0.0/8")), SignedUrls(b"secret"))
    embedded = EmbeddedObjects(SiteKey(b"secret"), "http://stoker.test")
    own = EmbeddedQueues(messaging, SignedUrls(b"secret", SignedUrls.AGENTS), "http://stoker.test")
    return Platform(
        "http://stoker.test",
        StackUsers(b"secret"),
        objects(work) if objects else embedded,
        own,
        messaging,
        identity_url="http://stoker.test/identity",
    )


class Machines:
    """A compute provider whose servers become ready when the test calls ``World.started``."""

    def __init__(self) -> None:
        self.asked: dict[str, ServerOwner] = {}

    def create(self, tx: Tx, *, server_id: str, project_id: str, name: str, owner: ServerOwner) -> None:
        self.asked[server_id] = owner

    def delete(self, tx: Tx, server_id: str) -> None:
        self.asked.pop(server_id, None)

    def address(self, server_id: str) -> str:
        return "192.0.2.1"

    def resume(self) -> None:
        pass

    def shut_down(self) -> None:
        pass


class Users:
    """Users that exist as soon as the test calls ``settle``."""

    def __init__(self) -> None:
        self.requested: list[str] = []
        self.enabled: dict[str, bool] = {}

    def ensure(self, tx, resource_id, stack_id, name):
        self.requested.append(resource_id)

    def find(self, tx, resource_id):
        ids = {"user_id": resource_id, "project_id": "users", "domain_id": "d"}
        return ids if self.enabled.get(resource_id) else None

    def disable(self, tx, resource_id):
        self.enabled[resource_id] = False

    def drop(self, tx, resource_id):
        self.enabled.pop(resource_id, None)
        self.requested = [id for id in self.requested if id != resource_id]

    def drop_stack(self, tx, stack):
        pass

    def settle(self, heat: World, failure: str | None = None) -> None:
        requested, self.requested = self.requested, []
        for id in requested:
            self.enabled[id] = failure is None
            heat.store.write(lambda tx, id=id: tx.wake(Owner.resource(id), Settled(failure)))


@dataclass
class World:
    """A project in a complete engine. Each operation also runs the jobs that continue it."""

    store: Store
    engine: Engine
    work: ManualWork
    machines: Machines
    project: str = "p"

    def create(
        self,
        template: Any,
        name: str = "s",
        options: Options | None = None,
        adopt: Mapping[str, Any] | None = None,
        **handed: Any,
    ) -> Stack:
        """Create a stack. ``adopt``: the resources of adoption data."""
        identity = Identity(str(uuid4()), name, self.project)
        resolved = prepare(self.engine, StackRequest(template=template, **handed), identity)
        adoption = None if adopt is None else Adoption(resources=dict(adopt))
        self.store.write(
            lambda tx: operations.create(tx, self.engine, resolved, options or Options(), username="u", adopt=adoption)
        )
        return self.settled(identity.stack_id)

    def update(self, stack: Stack, template: Any, options: Options | None = None, **handed: Any) -> Stack:
        """Update a stack to ``template``."""
        identity = Identity(stack.id, stack.name, self.project)
        resolved = prepare(self.engine, StackRequest(template=template, **handed), identity)
        self.store.write(lambda tx: operations.update(tx, self.engine, resolved, options or Options()))
        return self.settled(stack.id)

    def change(self, stack: Stack, clear: tuple[str, ...] = (), **handed: Any) -> Stack:
        """Update only the given parts of a stack."""
        identity = Identity(stack.id, stack.name, self.project)
        source = self.read(stacks.source, stack.id)
        resolved = prepare_change(self.engine, StackRequest(**handed), identity, source, clear)
        self.store.write(lambda tx: operations.update(tx, self.engine, resolved, Options()))
        return self.settled(stack.id)

    def delete(self, stack: Stack) -> Stack:
        self.store.write(lambda tx: operations.delete(tx, self.engine, stack.id))
        return self.settled(stack.id)

    def visit(self, stack: Stack, action: Action) -> Stack:
        """Run an action such as SUSPEND on a stack."""
        self.store.write(lambda tx: operations.run_action(tx, self.engine, stack.id, action))
        return self.settled(stack.id)

    def settled(self, stack_id: str) -> Stack:
        """Run the jobs of plans that are too large for one transaction, and return the stack."""
        self.work.run(ADVANCE)
        return self.read(stacks.get, stack_id)

    def signal(self, stack: Stack, name: str, **values: Any) -> Stack:
        """Signal a resource with a successful result, unless ``values`` state another."""
        details = {"deploy_stdout": "", "deploy_stderr": "", "deploy_status_code": 0, **values}
        self.store.write(lambda tx: signal_named(tx, self.engine, stack, name, details))
        return self.settled(stack.id)

    def report(self, deployment: Deployment, **values: Any) -> None:
        """Report a run as its agent does. Raises EntityNotFound if its server has no such run."""
        details = {"deploy_stdout": "", "deploy_stderr": "", "deploy_status_code": 0, **values}
        reports = [run_end.Report(deployment.server_id, deployment.config_id, details)]
        env, limit = self.engine.env, self.engine.limits.log_bytes
        (result,) = self.store.write(lambda tx: run_end.apply(tx, env, reports, limit))
        if isinstance(result, EntityNotFound):
            raise result
        self.work.run(ADVANCE)

    def report_all(self, **values: Any) -> None:
        """Report all runs, one at a time, and those that begin meanwhile, until none is in progress."""
        while running := self.running():
            self.report(running[0], **values)

    def complete(self, stack: Stack, **values: Any) -> Stack:
        """Report all runs, until none is in progress, and return the stack."""
        self.report_all(**values)
        return self.settled(stack.id)

    def started(self, stack: Stack) -> Stack:
        """Report all requested machines as started."""
        for owner in list(self.machines.asked.values()):
            self.store.write(lambda tx, id=owner.resource_id: tx.wake(Owner.resource(id)))
        return self.settled(stack.id)

    def resources(self, stack: Stack) -> dict[str, Resource]:
        """Return the current resources by name."""
        return {resource.name: resource for resource in self.read(stored.of_stack, stack.id) if resource.current}

    def nested(self, stack: Stack, name: str) -> Stack:
        """Return the stack of a resource that is a nested stack or a group."""
        return self.read(stacks.get, self.resources(stack)[name].physical_id)

    def leftovers(self, stack: Stack) -> list[Resource]:
        """Return the outdated resources."""
        return self.read(stored.outdated, stack.id)

    def read(self, function: Callable[..., Any], *args: Any, **more: Any) -> Any:
        """Call a function of the store in a transaction that reads, and return what it returns."""
        with self.store.read() as tx:
            return function(tx, *args, **more)

    def states(self, stack: Stack) -> dict[str, str]:
        """Return the states of the current resources by name."""
        return {name: f"{resource.action}_{resource.status}" for name, resource in self.resources(stack).items()}

    def outputs(self, stack: Stack, member: str = "output_value") -> dict[str, Any]:
        """Return the output values by name."""
        with self.store.read() as tx:
            stored_outputs = outputs.all_values(tx, self.engine, stacks.get(tx, stack.id))
        return {output["output_key"]: output[member] for output in stored_outputs if member in output}

    def output_errors(self, stack: Stack) -> dict[str, str]:
        """Return the errors of outputs by name."""
        return self.outputs(stack, "output_error")

    def stored_events(self, stack: Stack) -> list[Event]:
        """Return the events, oldest first."""
        return self.read(events.list_all, [stack.id], equal={}, limit=None, marker=None, descending=False)

    def events(self, stack: Stack) -> list[tuple[str, str]]:
        """Return the events as pairs of resource name and state."""
        return [(event.resource_name, f"{event.action}_{event.status}") for event in self.stored_events(stack)]

    def plan(self, stack: Stack, template: Any, files: Mapping[str, str] | None = None) -> tuple[Any, Any]:
        """Return the changes of each stack of the tree, and the runs, of an update of the stack to ``template``."""
        identity = Identity(stack.id, stack.name, self.project)
        resolved = prepare(self.engine, StackRequest(template=template, files=files), identity)
        with self.store.read() as tx:
            planner = Planner(tx, self.engine, stack, resolved, exists=True)
            return planner.levels, planner.runs

    def deployments(self) -> list[Deployment]:
        return self.read(deployments.list_all, self.project)

    def running(self) -> list[Deployment]:
        """Return the deployments in progress."""
        return [deployment for deployment in self.deployments() if deployment.status == "IN_PROGRESS"]

    def to_run(self, server_id: str) -> list[tuple[str, str]]:
        """Return the ids and bodies of the runs in a server's document."""
        return [(run.deployment_id, run.body) for run in self.read(documents.to_run, server_id)]

    def entry(self, server_id: str | None) -> dict[str, Any]:
        """Return the only run in a server's document, with its mode."""
        (run,) = self.read(documents.to_run, server_id)
        return {**rows.load(run.body), "mode": run.mode}

    def pending(self, server_id: str) -> list[tuple[Deployment, dict[str, Any]]]:
        """Return the runs in a server's document that are not to be stopped, with the values of their inputs."""
        with self.store.read() as tx:
            listed = [
                (deployments.get(tx, run.deployment_id), values(rows.load(run.body)["inputs"]))
                for run in documents.to_run(tx, server_id)
            ]
        return [(deployment, inputs) for deployment, inputs in listed if not deployment.cancelling]

    def messages(self, queue: str) -> list[Any]:
        """Return the bodies of the messages in a queue of the project, which need not exist."""
        with self.store.read() as tx:
            found = queues.find(tx, self.project, queue)
            listed = queues.page_messages(tx, found.id, limit=100, delayed=True) if found else []
        return [json.loads(message.body) for message in listed]

    def store_hook(self, name: str) -> Artifact:
        """Store a hook, which configs deliver by its name."""
        values = {"id": str(uuid4()), "kind": ArtifactKind.HOOK, "version": 1, "sha256": "2" * 64, "size": 1}
        hook = Artifact(**values, name=name, project_id=self.project, created_at=self.store.clock.now())
        self.store.write(lambda tx: artifacts.add(tx, hook, b"x"))
        return hook

    def config_of(self, deployment: Deployment) -> Config:
        """Return the config of the current run of a deployment."""
        return self.read(configs.get, deployment.config_id, self.project)

    def inputs_of(self, deployment: Deployment) -> dict[str, Any]:
        """Return the values of the inputs of the current run of a deployment."""
        return values(self.config_of(deployment).inputs)


def has_provider() -> bool:
    """Return whether the provider of clouds is installed."""
    return find_spec("stoker_openstack") is not None


#: The mark of tests whose templates have objects of a cloud.
needs_provider = pytest.mark.skipif(not has_provider(), reason="plugins/openstack is not installed")


def _provided(cloud: Any) -> Mapping[type[Any], Any]:
    if cloud == "none" or not has_provider():
        return {}
    from stoker_openstack.model import Cloud
    from stoker_openstack.simulated.provider import LocalCloud

    return {Cloud: LocalCloud("http://stoker.test") if cloud == "local" else cloud}


def world(
    store: Store,
    *,
    steps: int = 500,
    limits: Mapping[str, int] | None = None,
    deployment_policy: str = PROJECT,
    objects: Callable[[Work], Objects] | None = None,
    cloud: Any = "local",
    keystone_users: Any = None,
) -> World:
    """
    Create a world. ``objects`` replaces the embedded object store; ``keystone_users`` creates users at a Keystone.

    ``cloud``: "local" (machines, and the simulated cloud if a provider is installed), "none", or another cloud without
    machines.
    """
    work, machines = ManualWork(), Machines()
    local = Settings(local_servers_unsafe=True)
    provider = load_provider(ProviderSite(settings=local, store=store, work=work, secret=b"secret"))
    is_local = cloud == "local"
    services = ResourceEnv(
        transports=transports.load().for_site("STOKER_SIGNAL", "STOKER_PUSH"),
        work=work,
        compute=machines if is_local else None,
        signal_tokens=SignalTokens(b"secret"),
        platform=site(store, work, objects),
        remote_heats=RemoteHeatClient("http://stoker.test", "RegionOne", {}, lambda _: None),
        find_project=lambda _, ref: ref,
        keys=Keys(store, b"secret"),
        authorizer=DeploymentAuthorizer(work, SiteDefaults(allow=deployment_policy)),
        provider=replace(provider, offered=_provided(cloud)),
    )
    if keystone_users is not None:
        platform = replace(services.platform, identity_url="http://keystone.test")
        services = replace(services, platform=platform, stack_users=keystone_users, agents_wait=True)
    engine = Engine(types.load(), services, TemplateType(), Limits(steps_per_transaction=steps, **(limits or {})))
    types.register_jobs(store, engine)
    trigger_jobs.register(store, engine)
    return World(store, engine, work, machines)
