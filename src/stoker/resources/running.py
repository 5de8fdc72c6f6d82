"""One run of a deployment of a stack's: what it runs, how its result comes back, how it begins and what it leaves."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from typing import Any
from uuid import uuid4

from stoker.deployments import manage, runs
from stoker.deployments.deadlines import call_off, expect
from stoker.deployments.derive import derived_inputs, marked
from stoker.model.config import UNGROUPED, Config
from stoker.model.deployment import Deployment
from stoker.model.errors import DeploymentRefused
from stoker.model.stack import Resource
from stoker.model.status import Action
from stoker.resources.base import DONE, Context, Outcome, Properties, ResourceFailure, party_of, physical_name
from stoker.store import configs, deployments, servers
from stoker.transports import choosing
from stoker.transports.base import Lodging, Opening, Signalling
from stoker.transports.choosing import AUTO

COMPONENT = "component"

#: (source config's content, input values by name, properties) → content of the derived config
Render = Callable[[Any, Mapping[str, Any], Properties], Any]


@dataclass(frozen=True, slots=True)
class Source:
    """The parts of the source config that runs need; a deployment may do without one."""

    name: str | None = None
    group: str = UNGROUPED
    config: Any = None
    inputs: tuple[Mapping[str, Any], ...] = ()
    outputs: tuple[Mapping[str, Any], ...] = ()
    options: Mapping[str, Any] = field(default_factory=dict)


def source_of(context: Context, properties: Properties) -> Source | Config:
    """Raises ResourceFailure for a config that is not the project's."""
    id = properties["config"]
    if not id:
        return Source()
    found = configs.find(context.tx, id)
    if found is None or found.project_id != context.project_id:
        raise ResourceFailure(f"The Software config ({id}) could not be found.")
    return found


def is_triggered(source: Source | Config, properties: Properties, action: Action) -> bool:
    """Whether that action of the stack runs it."""
    if source.group == COMPONENT:
        return any(action in entry["actions"] for entry in _components(source))
    return action in properties["actions"]


def _components(source: Source | Config) -> list[Mapping[str, Any]]:
    """Its configs with their actions; anybody may store anything else under that group. Raises ResourceFailure."""
    configs = source.config.get("configs") if isinstance(source.config, Mapping) else None
    if not isinstance(configs, list):
        configs = [None]
    for entry in configs:
        if not isinstance(entry, Mapping) or not isinstance(entry.get("actions"), list):
            raise ResourceFailure(f'a config of the group "{COMPONENT}" needs a map of configs with their actions')
    return configs


def deletes_on_server(context: Context, deployment: Deployment, properties: Properties) -> bool:
    """Whether a DELETE action has to run first. Without the server or the config there is nothing to run it with."""
    config = configs.find(context.tx, properties["config"] or "") if properties.get("config") else Source()
    if config is None or not is_triggered(config, properties, Action.DELETE):
        return False
    return servers.find(context.tx, deployment.server_id) is not None


def _transport(context: Context, resource: Resource, properties: Properties) -> Signalling:
    """Once chosen it stays."""
    known = context.services.transports
    name = resource.data.get("signal_transport") or properties["signal_transport"] or known.default_signal
    if name == AUTO:
        server = servers.find(context.tx, properties["server"])
        name = choosing.signal(context.services.site, own_agent=server is not None and server.has_channel)
    return known.signalling[name]


def reached_by(context: Context, resource: Resource, properties: Properties) -> tuple[str, bool]:
    """The transport of its results, and whether the server's agent is ours."""
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
) -> manage.Run:
    """What that action runs, with its place for the result made. Raises what ``render`` raises."""
    transport = _transport(context, resource, properties)
    ours = isinstance(transport, Opening) and _has_own_agent(context, properties)
    party = replace(party_of(context, resource), run=str(_begun_so_far(resource) + 1), own_agent=ours)
    if isinstance(transport, Lodging) and "signal_transport" not in resource.data:
        transport.open(context.tx, context.services.site, party)
    facts = {
        "deploy_server_id": properties["server"],
        "deploy_action": action.value,
        "deploy_stack_id": f"{context.stack_name}/{context.stack_id}",
        "deploy_resource_name": resource.name,
        "deploy_signal_transport": transport.signal_name,
        **transport.signal_inputs(context.tx, context.services.site, party),
    }
    if transport.awaits_signal:
        facts[runs.STATUS_AWARE] = "true"
    if properties["timeout"] is not None:
        facts["deploy_timeout"] = str(properties["timeout"])
    if properties["on_interrupt"] is not None:
        facts["deploy_on_interrupt"] = properties["on_interrupt"]
    inputs = marked(derived_inputs(source.inputs, properties["input_values"] or {}, facts), context.hidden())
    return manage.Run(
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


def begin(context: Context, resource: Resource, properties: Properties, run: manage.Run) -> Outcome:
    """A first run, or another one of the same deployment. Raises DeploymentRefused."""
    try:
        return _begun(context, resource, properties, run)
    except DeploymentRefused:
        transport = context.services.transports.signalling[run.signal_transport]
        if isinstance(transport, Lodging) and "signal_transport" not in resource.data:
            transport.close(context.tx, context.services.site, party_of(context, resource))
        raise


def _begun(context: Context, resource: Resource, properties: Properties, run: manage.Run) -> Outcome:
    old = existing(context, resource)
    if old is None:
        deployment = manage.begin(
            context.tx,
            run,
            gate=context.services.gate,
            project_id=context.project_id,
            server_id=properties["server"],
            deployment_id=resource.physical_id or str(uuid4()),
            resource_id=resource.id,
            stack_id=context.stack_id,
        )
    else:
        deployment = manage.begin_again(context.tx, old, run, gate=context.services.gate)
        call_off(context.tx, context.services.work, old)
    if run.awaits_signal and properties["timeout"] is not None:
        expect(context.tx, context.services.work, deployment, properties["timeout"])
    data = {**resource.data, "signal_transport": run.signal_transport, "runs": _begun_so_far(resource) + 1}
    return Outcome(done=not run.awaits_signal, physical_id=deployment.id, data=data)


def _begun_so_far(resource: Resource) -> int:
    """How many it has begun."""
    return int(resource.data.get("runs") or 0)


def existing(context: Context, resource: Resource) -> Deployment | None:
    return deployments.find(context.tx, resource.physical_id) if resource.physical_id else None


def remove(context: Context, resource: Resource, deployment: Deployment) -> Outcome:
    """With its derived config and the place for its result."""
    call_off(context.tx, context.services.work, deployment)
    manage.withdraw(context.tx, deployment)
    configs.delete(context.tx, deployment.config_id)
    transport = context.services.transports.signalling.get(resource.data.get("signal_transport") or "")
    if isinstance(transport, Lodging):
        transport.close(context.tx, context.services.site, party_of(context, resource))
    return DONE
