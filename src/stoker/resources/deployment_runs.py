"""Runs of a stack's deployments: when an action runs the config, what it runs, and how its result returns."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import Any

from stoker.deployments import checks, service
from stoker.deployments.configs import content_of
from stoker.deployments.owners import StackResource
from stoker.deployments.run_plan import RunRequest
from stoker.deployments.undo import Undo, find_undo
from stoker.model.check import CheckSettings
from stoker.model.config import COMPONENT, UNGROUPED
from stoker.model.deployment import Deployment
from stoker.model.errors import UserParameterMissing
from stoker.model.stack import Resource
from stoker.model.status import Action
from stoker.model.trigger import Content
from stoker.resources.base import Context, Outcome, Properties, ResourceFailure, physical_name, target_of
from stoker.store import configs, deployments, resources, servers
from stoker.transports import selection
from stoker.transports.base import NeedsProvisioning, PresignedQueue, SignalTransport
from stoker.transports.selection import AUTO

#: Of a deployment without a config.
EMPTY = Content(name=None, group=UNGROUPED, config="", options={}, facts={})


def content_for(context: Context, properties: Properties) -> Content:
    """Return the content that the deployment runs. Raises ResourceFailure if the project has no such config."""
    id = properties["config"]
    if not id:
        return as_structured(EMPTY, properties)
    config = configs.find(context.tx, id)
    if config is None or config.project_id != context.project_id:
        raise ResourceFailure(f"The Software config ({id}) could not be found.")
    content = content_of(config)
    return as_structured(replace(content, config="") if content.config is None else content, properties)


def as_structured(content: Content, properties: Properties) -> Content:
    """Return the content with the properties of a structured deployment, which say how values are substituted."""
    if "input_key" not in properties:
        return content
    is_strict = properties["input_values_validate"] == "STRICT"
    return replace(content, input_key=properties["input_key"], strict=is_strict)


def is_triggered(content: Content, properties: Properties, action: Action) -> bool:
    """Return whether this action of the stack runs the config."""
    if content.group == COMPONENT:
        return any(action in entry["actions"] for entry in _components(content))
    return action in properties["actions"]


def _components(content: Content) -> list[Mapping[str, Any]]:
    """
    Return a component's configs with their actions.

    Raises ResourceFailure for other content, because clients may store any content in a config of the group
    ``component``.
    """
    entries = content.config.get("configs") if isinstance(content.config, Mapping) else None
    if not isinstance(entries, list):
        entries = [None]
    for entry in entries:
        if not isinstance(entry, Mapping) or not isinstance(entry.get("actions"), list):
            raise ResourceFailure(f'a config of the group "{COMPONENT}" needs a map of configs with their actions')
    return entries


def deletes_on_server(context: Context, deployment: Deployment, properties: Properties) -> bool:
    """Return whether a DELETE run has to precede the removal. False if the server or the config no longer exists."""
    config = configs.find(context.tx, properties["config"]) if properties.get("config") else None
    if properties.get("config") and config is None:
        return False
    if not is_triggered(content_of(config) if config else EMPTY, properties, Action.DELETE):
        return False
    return servers.find(context.tx, deployment.server_id) is not None


def _transport(context: Context, resource: Resource, properties: Properties) -> SignalTransport:
    """Return the deployment's signal transport. The choice is stored with the first run and does not change later."""
    transports = context.env.transports
    name = resource.data.get("signal_transport") or properties["signal_transport"] or transports.default_signal
    if name == AUTO:
        server = servers.find(context.tx, _server_id(context, properties))
        name = selection.select_signal(context.env.platform, own_agent=server is not None and server.has_channel)
    return transports.signal_transports[name]


def reached_by(context: Context, resource: Resource, properties: Properties) -> tuple[str, bool]:
    """Return the name of the signal transport, and whether the server runs Stoker's agent."""
    return _transport(context, resource, properties).signal_name, _has_own_agent(context, properties)


def _has_own_agent(context: Context, properties: Properties) -> bool:
    server = servers.find(context.tx, _server_id(context, properties))
    return server is not None and server.has_own_agent


def _server_id(context: Context, properties: Properties) -> str:
    """Return the id of the deployment's server, which the template may call by its name."""
    return servers.resolve_id(context.tx, context.project_id, properties["server"])


def find_resource_undo(context: Context, resource: Resource, deployment: Deployment) -> Undo | None:
    """
    Return what undoes the deployment of a resource that is deleted, or None. Raises Invalid.

    A replacement on the same server takes over what the deployment made: hooks remember it by stack and resource name,
    and an undo after the replacement's run would destroy that run's work.
    """
    current = resources.find_by_name(context.tx, context.stack_id, resource.name)
    if current is not None and current.id != resource.id and current.physical_id:
        replacement = deployments.find(context.tx, current.physical_id)
        if replacement is not None and replacement.server_id == deployment.server_id:
            return None
    return find_undo(context.tx, deployment, resource.properties["timeout"])


def start_undo(context: Context, resource: Resource, undo: Undo) -> Outcome:
    """Start the run that undoes the deployment. Raises ResourceFailure."""
    properties = {**resource.properties, "input_values": undo.input_values, "timeout": undo.timeout}
    return start(context, resource, properties, Action.DELETE, undo.content, mode=undo.mode)


def start(
    context: Context,
    resource: Resource,
    properties: Properties,
    action: Action,
    content: Content,
    *,
    mode: str | None = None,
) -> Outcome:
    """
    Start the deployment's first run, or another run of the same deployment. ``mode``: see ``RunRequest``.

    Raises DeploymentRefused, and ResourceFailure if the content needs a value that the deployment does not have.
    """
    transport = _transport(context, resource, properties)
    number = int(resource.data.get("runs") or 0) + 1
    own_agent = isinstance(transport, PresignedQueue) and _has_own_agent(context, properties)
    owner = StackResource(
        resource=replace(target_of(context, resource), run=str(number), own_agent=own_agent),
        has_transport="signal_transport" in resource.data,
    )
    facts = {"deploy_stack_id": f"{context.stack_name}/{context.stack_id}", "deploy_resource_name": resource.name}
    if properties["on_interrupt"] is not None:
        facts["deploy_on_interrupt"] = properties["on_interrupt"]
    request = RunRequest(
        content=replace(content, facts=facts),
        action=action.value,
        name=properties["name"] or content.name or physical_name(context, resource),
        input_values=properties["input_values"] or {},
        signal_transport=transport.signal_name,
        timeout=properties["timeout"],
        mode=mode,
        checks=CheckSettings.of(properties),
    )
    try:
        deployment = service.start_run(
            context.tx,
            context.env,
            owner,
            request,
            project_id=context.project_id,
            server_id=_server_id(context, properties),
            deployment_id=resource.physical_id,
            before=find_deployment(context, resource),
        )
    except UserParameterMissing as error:
        raise ResourceFailure(error.message) from None
    data = {**resource.data, "signal_transport": transport.signal_name, "runs": number}
    return Outcome(done=not transport.awaits_signal, physical_id=deployment.id, data=data)


def configure_checks(context: Context, resource: Resource, properties: Properties, content: Content) -> None:
    """Set how the deployment is checked: its own properties take precedence over the options of its config."""
    deployment = find_deployment(context, resource)
    if deployment is not None:
        settings = CheckSettings.of(properties).over(CheckSettings.of(content.options))
        checks.configure(context.tx, context.env.work, deployment, settings)


def find_deployment(context: Context, resource: Resource) -> Deployment | None:
    """Return the resource's deployment; None if there is none yet, or if a user deleted it."""
    if context.changed is not None and context.changed.id == resource.physical_id:
        return context.changed
    return deployments.find(context.tx, resource.physical_id) if resource.physical_id else None


def close(context: Context, resource: Resource) -> None:
    """Delete the object or queue that the transport provides for results."""
    transport = context.env.transports.signal_transports.get(resource.data.get("signal_transport") or "")
    if isinstance(transport, NeedsProvisioning):
        transport.close(context.tx, context.env.platform, target_of(context, resource))
