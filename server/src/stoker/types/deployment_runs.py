"""Runs of a stack's deployments: when an action runs the config, what it runs, and how its result returns."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from msgspec.structs import replace

from stoker.deployments import checks, service
from stoker.deployments.configs import source_inputs
from stoker.deployments.run_plan import RunRequest, Undo, requests_undo
from stoker.model.config import COMPONENT, UNGROUPED, Content
from stoker.model.deployment import CheckSettings, Deployment
from stoker.model.errors import EntityNotFound, UserParameterMissing
from stoker.model.stack import RUN_COUNT, Action, Resource, Status
from stoker.resources.base import Context, Outcome, Properties, ResourceFailure, physical_name, target_of
from stoker.store import configs, deployments, servers
from stoker.store.tx import Tx
from stoker.transports import AUTO, select_signal
from stoker.transports.base import SignalTransport, needs_provisioning, signed_method_of

#: Key of ``Resource.data`` while a run has not succeeded: the properties with which an earlier run did.
APPLIED = "applied"
#: The properties that decide what runs.
_CONTENT = ("config", "input_values", "input_key", "input_values_validate")
#: Of a deployment without a config.
EMPTY = Content(name=None, group=UNGROUPED, config="", options={}, facts={})


def content_for(context: Context, properties: Properties) -> Content:
    """Return the content that the deployment runs. Raises ResourceFailure if the project has no such config."""
    try:
        return content_of_properties(context.tx, context.project_id, properties)
    except EntityNotFound as error:
        raise ResourceFailure(error.message) from None


def content_of_properties(tx: Tx, project_id: str, properties: Properties) -> Content:
    """
    Return the content that a deployment with these properties runs.

    Raises EntityNotFound if the project has no such config.
    """
    id = properties.get("config")
    content = Content.of(configs.get(tx, id, project_id)) if id else EMPTY
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


def check_content(content: Content) -> None:
    """Raise ResourceFailure for a component that has no configs with their actions."""
    if content.group == COMPONENT:
        _components(content)


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


def find_deletion(context: Context, deployment: Deployment, properties: Properties) -> Content | None:
    """
    Return what a DELETE run has to execute before a deployment is removed.

    Returns None if the config does not run for DELETE, or if the server no longer exists.
    """
    content = _find_content(context, deployment, properties)
    if content is None or not is_triggered(content, properties, Action.DELETE):
        return None
    return content if servers.find(context.tx, deployment.server_id) is not None else None


def _find_content(context: Context, deployment: Deployment | None, properties: Properties) -> Content | None:
    """
    Return the content that the deployment runs.

    If the config was deleted, the derived config of the last run has the content. None: there was no run.
    """
    try:
        return content_for(context, properties)
    except ResourceFailure:
        derived = configs.find(context.tx, deployment.config_id) if deployment is not None else None
    if derived is None:
        return None
    inputs, _ = source_inputs(derived.inputs)
    return as_structured(replace(Content.of(derived), inputs=inputs), properties)


def choose_transport(context: Context, resource: Resource, properties: Properties) -> SignalTransport:
    """Return the deployment's signal transport. The choice is stored with the first run and does not change later."""
    transports = context.env.transports
    name = resource.data.get("signal_transport") or properties["signal_transport"] or transports.default_signal
    if name == AUTO:
        server = servers.find(context.tx, properties["server"])
        name = select_signal(context.env.platform, own_agent=server is not None and server.has_channel)
    return transports.signal_transports[name]


def _reporting(context: Context, properties: Properties, chosen: SignalTransport) -> SignalTransport:
    """
    Return the transport of a DELETE, whose end Stoker's agent reports also for ``NO_SIGNAL``.

    A deployment that is removed at once takes its DELETE from the agent before the agent has read it.
    """
    server = None if chosen.awaits_signal else servers.find(context.tx, properties["server"])
    if server is None or not server.has_channel:
        return chosen
    return context.env.transports.signal_transports[select_signal(context.env.platform, own_agent=True)]


def has_own_agent(context: Context, properties: Properties) -> bool:
    """Return whether the deployment's server runs Stoker's agent."""
    server = servers.find(context.tx, properties["server"])
    return server is not None and server.has_own_agent


def is_former(context: Context, resource: Resource, name: str, content: Content) -> bool:
    """
    Return whether the removal of a deployment, or of a group, runs something that must precede a new deployment.

    ``name`` and ``content`` are those of the new one, which takes the place of a resource with either of them.
    """
    if find_removal(context, resource) is None:
        return False
    if resource.name == name:
        return True
    try:
        other = content_for(context, resource.properties)
    except ResourceFailure:
        return False  # the config no longer exists
    return (other.group, other.config) == (content.group, content.config)


def find_removal(context: Context, resource: Resource) -> Content | None:
    """Return what the removal of a deployment, or of a group of deployments, may run or undo; None: nothing."""
    if not resource.properties or resource.definition.get("deletion_policy") == "Retain":
        return None
    content = _find_content(context, find_deployment(context, resource), resource.properties)
    try:
        if content is None or not (is_triggered(content, resource.properties, Action.DELETE) or requests_undo(content)):
            return None
    except ResourceFailure:
        return None  # a component that is none has never run
    return content


def applied_properties(resource: Resource) -> Properties:
    """
    Return the properties with which the deployment last succeeded on its server; the present ones if it never did.

    They differ from the present ones while an update has not succeeded.
    """
    return {**resource.properties, **(resource.data.get(APPLIED) or {})}


def _keep_applied(
    context: Context, resource: Resource, properties: Properties, before: Deployment | None
) -> Mapping[str, Any]:
    """
    Return the entry of the resource's data that keeps the properties of the last success during a run with others.
    """
    if before is None or APPLIED in resource.data:
        return {}
    present = {name: resource.properties[name] for name in _CONTENT if name in resource.properties}
    if all(properties.get(name) == value for name, value in present.items()):
        return {}
    # A remediation may have failed since the success, so the status of the deployment is not enough.
    has_succeeded = before.status == Status.COMPLETE or deployments.has_completed(context.tx, before.id)
    return {APPLIED: present} if has_succeeded else {}


def start(
    context: Context,
    resource: Resource,
    properties: Properties,
    action: Action,
    content: Content,
    undo: Undo | None = None,
) -> Outcome:
    """
    Start the deployment's first run, or another run of the same deployment, which may ``undo`` an earlier one: then the
    timeout includes the wait for the agent, because a lost server must not block a deletion for ever.

    Raises DeploymentRefused, and ResourceFailure if the content needs a value that the deployment does not have.
    """
    chosen = choose_transport(context, resource, properties)
    transport = _reporting(context, properties, chosen) if action is Action.DELETE else chosen
    number = int(resource.data.get(RUN_COUNT) or 0) + 1
    own_agent = signed_method_of(transport) is not None and has_own_agent(context, properties)
    request = RunRequest(
        content=replace(content, facts=stack_facts(context.stack_name, context.stack_id, resource.name, properties)),
        action=action.value,
        name=properties["name"] or content.name or physical_name(context, resource),
        project_id=context.project_id,
        server_id=properties["server"],
        resource=replace(target_of(context, resource), run=str(number), own_agent=own_agent),
        input_values=properties["input_values"] or {},
        signal_transport=transport.signal_name,
        timeout=properties["timeout"],
        limits_queue=undo is not None,
        mode=undo.mode if undo is not None else None,
        checks=CheckSettings.of(properties),
    )
    before = find_deployment(context, resource)
    try:
        deployment = service.start_run(
            context.tx, context.env, request, deployment_id=resource.physical_id, before=before
        )
    except UserParameterMissing as error:
        raise ResourceFailure(error.message) from None
    data = {**resource.data, "signal_transport": chosen.signal_name, RUN_COUNT: number}
    if transport.awaits_signal:
        data |= _keep_applied(context, resource, properties, before)
    return Outcome(done=not transport.awaits_signal, physical_id=deployment.id, data=data)


def stack_facts(stack_name: str, stack_id: str, resource_name: str, properties: Properties) -> dict[str, str]:
    """Return the ``deploy_*`` inputs of a run that tell its place in a stack, and what an interruption means."""
    facts = {"deploy_stack_id": f"{stack_name}/{stack_id}", "deploy_resource_name": resource_name}
    if properties.get("on_interrupt") is not None:
        facts["deploy_on_interrupt"] = properties["on_interrupt"]
    return facts


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
    """Delete the objects or queues that the transport provides for results."""
    transport = context.env.transports.signal_transports.get(resource.data.get("signal_transport") or "")
    if needs_provisioning(transport):
        target = target_of(context, resource)
        for run in (str(resource.data.get(RUN_COUNT) or ""), ""):
            transport.close(context.tx, context.env.platform, replace(target, run=run))
