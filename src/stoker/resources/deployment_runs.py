"""Runs of a stack's deployments: plan a run, start it, and remove what it leaves."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from typing import Any
from uuid import uuid4

from stoker.deployments import runs, service
from stoker.deployments.deadlines import cancel_deadline, set_deadline
from stoker.deployments.derive import derived_inputs, mark_secrets
from stoker.model.config import UNGROUPED, Config
from stoker.model.deployment import Deployment
from stoker.model.errors import DeploymentRefused
from stoker.model.stack import Resource
from stoker.model.status import Action
from stoker.resources.base import DONE, Context, Outcome, Properties, ResourceFailure, physical_name, target_of
from stoker.store import configs, deployments, servers
from stoker.transports import selection
from stoker.transports.base import NeedsProvisioning, PresignedQueue, SignalTransport
from stoker.transports.selection import AUTO

COMPONENT = "component"

#: Renders a derived config: (content of the source config, input values by name, properties) → content.
Render = Callable[[Any, Mapping[str, Any], Properties], Any]


@dataclass(frozen=True, slots=True)
class Source:
    """The parts of a source config that a run needs. The defaults apply to a deployment without a config."""

    name: str | None = None
    group: str = UNGROUPED
    config: Any = None
    inputs: tuple[Mapping[str, Any], ...] = ()
    outputs: tuple[Mapping[str, Any], ...] = ()
    options: Mapping[str, Any] = field(default_factory=dict)


def source_of(context: Context, properties: Properties) -> Source | Config:
    """Return the deployment's config. Raises ResourceFailure if the project has no such config."""
    id = properties["config"]
    if not id:
        return Source()
    found = configs.find(context.tx, id)
    if found is None or found.project_id != context.project_id:
        raise ResourceFailure(f"The Software config ({id}) could not be found.")
    return found


def is_triggered(source: Source | Config, properties: Properties, action: Action) -> bool:
    """Return whether this action of the stack runs the config."""
    if source.group == COMPONENT:
        return any(action in entry["actions"] for entry in _components(source))
    return action in properties["actions"]


def _components(source: Source | Config) -> list[Mapping[str, Any]]:
    """
    Return a component's configs with their actions.

    Raises ResourceFailure for other content, because clients may store any content in a config of the group
    ``component``.
    """
    configs = source.config.get("configs") if isinstance(source.config, Mapping) else None
    if not isinstance(configs, list):
        configs = [None]
    for entry in configs:
        if not isinstance(entry, Mapping) or not isinstance(entry.get("actions"), list):
            raise ResourceFailure(f'a config of the group "{COMPONENT}" needs a map of configs with their actions')
    return configs


def deletes_on_server(context: Context, deployment: Deployment, properties: Properties) -> bool:
    """Return whether a DELETE run has to precede the removal. False if the server or the config no longer exists."""
    config = configs.find(context.tx, properties["config"] or "") if properties.get("config") else Source()
    if config is None or not is_triggered(config, properties, Action.DELETE):
        return False
    return servers.find(context.tx, deployment.server_id) is not None


def _transport(context: Context, resource: Resource, properties: Properties) -> SignalTransport:
    """Return the deployment's signal transport. The choice is stored with the first run and does not change later."""
    known = context.env.transports
    name = resource.data.get("signal_transport") or properties["signal_transport"] or known.default_signal
    if name == AUTO:
        server = servers.find(context.tx, properties["server"])
        name = selection.select_signal(context.env.platform, own_agent=server is not None and server.has_channel)
    return known.signal_transports[name]


def reached_by(context: Context, resource: Resource, properties: Properties) -> tuple[str, bool]:
    """Return the name of the signal transport, and whether the server runs Stoker's agent."""
    return _transport(context, resource, properties).signal_name, _has_own_agent(context, properties)


def _has_own_agent(context: Context, properties: Properties) -> bool:
    server = servers.find(context.tx, properties["server"])
    return server is not None and server.has_own_agent


def plan(
    context: Context,
    resource: Resource,
    properties: Properties,
    action: Action,
    source: Source | Config,
    render: Render,
) -> service.Run:
    """
    Return the run that this action of the stack starts, and create the transport's object or queue for its result.

    Raises the errors of ``render``.
    """
    transport = _transport(context, resource, properties)
    ours = isinstance(transport, PresignedQueue) and _has_own_agent(context, properties)
    target = replace(target_of(context, resource), run=str(_started_deployment(resource) + 1), own_agent=ours)
    if isinstance(transport, NeedsProvisioning) and "signal_transport" not in resource.data:
        transport.open(context.tx, context.env.platform, target)
    facts = {
        "deploy_server_id": properties["server"],
        "deploy_action": action.value,
        "deploy_stack_id": f"{context.stack_name}/{context.stack_id}",
        "deploy_resource_name": resource.name,
        "deploy_signal_transport": transport.signal_name,
        **transport.signal_inputs(context.tx, context.env.platform, target),
    }
    if transport.awaits_signal:
        facts[runs.STATUS_AWARE] = "true"
    if properties["timeout"] is not None:
        facts["deploy_timeout"] = str(properties["timeout"])
    if properties["on_interrupt"] is not None:
        facts["deploy_on_interrupt"] = properties["on_interrupt"]
    derived = derived_inputs(source.inputs, properties["input_values"] or {}, facts)
    inputs = mark_secrets(derived, context.tx.secrets.texts)
    return service.Run(
        action=action.value,
        name=properties["name"] or source.name or physical_name(context, resource),
        group=source.group or UNGROUPED,
        config=render(source.config, {entry["name"]: entry["value"] for entry in inputs}, properties),
        inputs=inputs,
        outputs=source.outputs,
        options=source.options,
        input_values=properties["input_values"] or {},
        signal_transport=transport.signal_name,
        awaits_signal=transport.awaits_signal,
    )


def begin(context: Context, resource: Resource, properties: Properties, run: service.Run) -> Outcome:
    """Start the deployment's first run, or another run of the same deployment. Raises DeploymentRefused."""
    try:
        return _start(context, resource, properties, run)
    except DeploymentRefused:
        transport = context.env.transports.signal_transports[run.signal_transport]
        if isinstance(transport, NeedsProvisioning) and "signal_transport" not in resource.data:
            transport.close(context.tx, context.env.platform, target_of(context, resource))
        raise


def _start(context: Context, resource: Resource, properties: Properties, run: service.Run) -> Outcome:
    old = find_deployment(context, resource)
    if old is None:
        deployment = service.begin(
            context.tx,
            run,
            authorizer=context.env.authorizer,
            project_id=context.project_id,
            server_id=properties["server"],
            deployment_id=resource.physical_id or str(uuid4()),
            resource_id=resource.id,
            stack_id=context.stack_id,
        )
    else:
        deployment = service.begin_again(context.tx, old, run, authorizer=context.env.authorizer)
        cancel_deadline(context.tx, context.env.work, old)
    if run.awaits_signal and properties["timeout"] is not None:
        set_deadline(context.tx, context.env.work, deployment, properties["timeout"])
    data = {**resource.data, "signal_transport": run.signal_transport, "runs": _started_deployment(resource) + 1}
    return Outcome(done=not run.awaits_signal, physical_id=deployment.id, data=data)


def _started_deployment(resource: Resource) -> int:
    """Return the number of runs that the deployment has started."""
    return int(resource.data.get("runs") or 0)


def find_deployment(context: Context, resource: Resource) -> Deployment | None:
    """Return the resource's deployment; None if there is none yet, or if a user deleted it."""
    return deployments.find(context.tx, resource.physical_id) if resource.physical_id else None


def remove(context: Context, resource: Resource, deployment: Deployment | None) -> Outcome:
    """
    Delete the deployment, its derived config and the transport's object or queue.

    ``deployment`` None: a user has deleted the deployment already.
    """
    if deployment is not None:
        cancel_deadline(context.tx, context.env.work, deployment)
        service.withdraw(context.tx, deployment)
    close(context, resource)
    return DONE


def close(context: Context, resource: Resource) -> None:
    """Delete the object or queue that the transport provides for results."""
    transport = context.env.transports.signal_transports.get(resource.data.get("signal_transport") or "")
    if isinstance(transport, NeedsProvisioning):
        transport.close(context.tx, context.env.platform, target_of(context, resource))
