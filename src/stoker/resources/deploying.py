"""What SoftwareDeployment and StructuredDeployment share: runs of a config on a server, and their end."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from datetime import timedelta
from typing import Any
from uuid import uuid4

from stoker import transports
from stoker.deployments import manage
from stoker.deployments.derive import derived_inputs, must_replace
from stoker.hot import UNKNOWN
from stoker.hot.words import clip
from stoker.model.config import UNGROUPED, Config
from stoker.model.deployment import Deployment
from stoker.model.errors import StackValidationFailed
from stoker.model.server import Kind
from stoker.model.stack import Resource
from stoker.model.status import Action, Status
from stoker.resources.base import (
    DONE,
    LONGEST_WAIT,
    Context,
    NoSuchAttribute,
    Outcome,
    Properties,
    Replace,
    ResourceFailure,
    Signalled,
    party_of,
    physical_name,
)
from stoker.resources.properties import Property
from stoker.store import configs, deployments, servers
from stoker.transports import choosing
from stoker.transports.base import Lodging, Signalling
from stoker.transports.choosing import AUTO

#: Kind of the job that ends a run whose time is over.
DEADLINE = "deployment.deadline"
#: The agent itself ends the hook in time; the server gives up only when no word of that comes.
GRACE = timedelta(seconds=15)
COMPONENT = "component"
#: In a result: the derived config that was run.
RUN = "deploy_config_id"
#: Characters of a server's id.
LONGEST_ID = 36

PROPERTIES: Mapping[str, Property] = {
    "config": Property(kind="string", update_allowed=True, description="Id of the config to run."),
    "server": Property(kind="string", required=True, longest=LONGEST_ID, description="Id of the server to run it on."),
    "input_values": Property(kind="map", update_allowed=True, description="Values for the config's inputs."),
    "actions": Property(
        kind="list",
        each=Property(kind="string", allowed=("CREATE", "UPDATE", "DELETE", "SUSPEND", "RESUME")),
        default=["CREATE", "UPDATE"],
        update_allowed=True,
        description="Which of the stack's actions run the config.",
    ),
    "name": Property(
        kind="string",
        longest=255,
        update_allowed=True,
        description="Name of the derived config: a server runs in order of names.",
    ),
    "signal_transport": Property(kind="string", description="How the server reports the result."),
    "timeout": Property(
        kind="number",
        minimum=1,
        maximum=LONGEST_WAIT,
        update_allowed=True,
        description="Seconds after which the run is ended and has failed (Stoker's own).",
    ),
    "on_interrupt": Property(
        kind="string",
        allowed=("FAIL", "RERUN"),
        update_allowed=True,
        description="What an agent that was killed during the run does with it when it is back (Stoker's own).",
    ),
}

ATTRIBUTES: Mapping[str, str] = {
    "deploy_stdout": "Captured standard output.",
    "deploy_stderr": "Captured standard error.",
    "deploy_status_code": "The exit code.",
}

#: (source config's content, input values by name, properties) → content of the derived config
Render = Callable[[Any, Mapping[str, Any], Properties], Any]


@dataclass(frozen=True, slots=True)
class _Source:
    """The parts of the source config that runs need; a deployment may do without one."""

    name: str | None = None
    group: str = UNGROUPED
    config: Any = None
    inputs: tuple[Mapping[str, Any], ...] = ()
    outputs: tuple[Mapping[str, Any], ...] = ()
    options: Mapping[str, Any] = field(default_factory=dict)


def create(context: Context, resource: Resource, properties: Properties, render: Render) -> Outcome:
    """Also a failed deployment's next try: same deployment, new run."""
    source = _source(context, properties)
    if not _triggered(source, properties, Action.CREATE):
        return DONE
    return _run(context, resource, properties, _plan(context, resource, properties, Action.CREATE, source, render))


def update(context: Context, resource: Resource, properties: Properties, render: Render) -> Outcome:
    source = _source(context, properties)
    if not _triggered(source, properties, Action.UPDATE):
        return DONE
    run = _plan(context, resource, properties, Action.UPDATE, source, render)
    old = _existing(context, resource)
    before = configs.find(context.tx, old.config_id) if old else None
    if before is not None and (name := must_replace(before.inputs, run.inputs)):
        raise Replace(f"input {name} changed")
    return _run(context, resource, properties, run)


def delete(context: Context, resource: Resource, render: Render) -> Outcome:
    old = _existing(context, resource)
    if old is None:
        return DONE
    properties = resource.properties
    if not _deletes_on_server(context, old, properties):
        return _remove(context, resource, old)
    source = _source(context, properties)
    run = _plan(context, resource, properties, Action.DELETE, source, render)
    outcome = _run(context, resource, properties, run)
    return check(context, resource) if outcome.done else outcome


def check(context: Context, resource: Resource) -> Outcome:
    """Whether the current run has ended, and how. Raises ResourceFailure."""
    deployment = _existing(context, resource)
    if deployment is None:
        return DONE
    if deployment.status == Status.IN_PROGRESS:
        return Outcome(done=False)
    context.services.work.cancel(context.tx, DEADLINE, deployment.config_id)
    if deployment.status == Status.FAILED:
        raise ResourceFailure(f"Deployment to server failed: {deployment.status_reason}")
    return _remove(context, resource, deployment) if resource.action is Action.DELETE else DONE


def attribute(context: Context, resource: Resource, name: str) -> Any:
    deployment = _existing(context, resource)
    if deployment is None:
        return None
    if name in deployment.output_values:
        return deployment.output_values[name]
    config = configs.find(context.tx, deployment.config_id)
    declared = {output["name"] for output in config.outputs} if config else set()
    if name in ATTRIBUTES or name in declared:
        return None  # not there yet
    raise NoSuchAttribute(name)


def signal(context: Context, resource: Resource, details: Mapping[str, Any]) -> Signalled:
    deployment = _existing(context, resource)
    if deployment is None:
        return Signalled("no deployment to signal")
    # Our agent says which run it speaks of, whatever the transport.
    if details.get(RUN, deployment.config_id) != deployment.config_id:
        return Signalled(f"deployment {deployment.id}: late, of an earlier run")
    said = {name: value for name, value in details.items() if name != RUN}
    settled = manage.take_signal(context.tx, deployment, said)
    if settled.status != Status.FAILED:
        return Signalled(f"deployment {settled.id} succeeded")
    code = settled.output_values.get("deploy_status_code")
    return Signalled(f"deployment {settled.id} failed" + (f" ({code})" if code else ""))


def actions(render: Render) -> Mapping[Action, Callable[[Context, Resource], Outcome]]:
    """SUSPEND and RESUME run the config where the deployment says so."""

    def doing(action: Action) -> Callable[[Context, Resource], Outcome]:
        def do(context: Context, resource: Resource) -> Outcome:
            if not resource.properties:
                return DONE  # it never began
            source = _source(context, resource.properties)
            if not _triggered(source, resource.properties, action):
                return DONE
            run = _plan(context, resource, resource.properties, action, source, render)
            return _run(context, resource, resource.properties, run)

        return do

    return {action: doing(action) for action in (Action.SUSPEND, Action.RESUME)}


def adopt(context: Context, resource: Resource, _properties: Properties) -> Outcome:
    """Raises ResourceFailure when the deployment is gone or another stack's."""
    deployment = _existing(context, resource)
    if deployment is None or deployment.project_id != context.project_id or deployment.stack_id is not None:
        raise ResourceFailure(f"The deployment ({resource.physical_id}) is not there to be adopted.")
    deployments.relink(context.tx, deployment.id, context.stack_id, resource.id)
    return check(context, resource)


def exists(context: Context, id: str) -> bool:
    found = deployments.find(context.tx, id)
    return found is not None and found.project_id == context.project_id


def cancel(context: Context, resource: Resource) -> None:
    """Heat's words; the run's entry leaves the server's document, so its agent ends it."""
    deployment = _existing(context, resource)
    if deployment is not None:
        context.services.work.cancel(context.tx, DEADLINE, deployment.config_id)
        manage.fail(context.tx, deployment, "Deployment cancelled.")


def validate(properties: Properties) -> None:
    wanted = properties["signal_transport"]
    known = transports.load().signal_names
    if wanted not in (UNKNOWN, None, *known):
        raise StackValidationFailed(
            f"signal_transport: {clip(repr(wanted))} is not an allowed value [{', '.join(known)}]"
        )


def _source(context: Context, properties: Properties) -> _Source | Config:
    id = properties["config"]
    if not id:
        return _Source()
    found = configs.find(context.tx, id)
    if found is None or found.project_id != context.project_id:
        raise ResourceFailure(f"The Software config ({id}) could not be found.")
    return found


def _triggered(source: _Source | Config, properties: Properties, action: Action) -> bool:
    if source.group == COMPONENT:
        return any(action in entry["actions"] for entry in _components(source))
    return action in properties["actions"]


def _components(source: _Source | Config) -> list[Mapping[str, Any]]:
    """Its configs with their actions; anybody may store anything else under that group. Raises ResourceFailure."""
    configs = source.config.get("configs") if isinstance(source.config, Mapping) else None
    if not isinstance(configs, list):
        configs = [None]
    for entry in configs:
        if not isinstance(entry, Mapping) or not isinstance(entry.get("actions"), list):
            raise ResourceFailure(f'a config of the group "{COMPONENT}" needs a map of configs with their actions')
    return configs


def _deletes_on_server(context: Context, deployment: Deployment, properties: Properties) -> bool:
    """Whether a DELETE action has to run first. Without the server or the config there is nothing to run it with."""
    config = configs.find(context.tx, properties["config"] or "") if properties.get("config") else _Source()
    if config is None or not _triggered(config, properties, Action.DELETE):
        return False
    return servers.find(context.tx, deployment.server_id) is not None


def _transport(context: Context, resource: Resource, properties: Properties) -> Signalling:
    """Once chosen it stays."""
    known = context.services.transports
    name = resource.data.get("signal_transport") or properties["signal_transport"] or known.default_signal
    if name == AUTO:
        server = servers.find(context.tx, properties["server"])
        own_agent = server is not None and server.kind is not Kind.DEPLOYED
        name = choosing.signal(context.services.site, own_agent=own_agent)
    return known.signalling[name]


def _plan(
    context: Context,
    resource: Resource,
    properties: Properties,
    action: Action,
    source: _Source | Config,
    render: Render,
) -> manage.Run:
    transport = _transport(context, resource, properties)
    party = replace(party_of(context, resource), run=str(_runs(resource) + 1))
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
    if properties["timeout"] is not None:
        facts["deploy_timeout"] = str(properties["timeout"])
    if properties["on_interrupt"] is not None:
        facts["deploy_on_interrupt"] = properties["on_interrupt"]
    inputs = derived_inputs(source.inputs, properties["input_values"] or {}, facts)
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


def _run(context: Context, resource: Resource, properties: Properties, run: manage.Run) -> Outcome:
    old = _existing(context, resource)
    if old is None:
        deployment = manage.begin(
            context.tx,
            run,
            project_id=context.project_id,
            server_id=properties["server"],
            deployment_id=resource.physical_id or str(uuid4()),
            resource_id=resource.id,
            stack_id=context.stack_id,
        )
    else:
        context.services.work.cancel(context.tx, DEADLINE, old.config_id)
        deployment = manage.begin_again(context.tx, old, run)
    if run.awaits_signal and properties["timeout"] is not None:
        args = {"deployment_id": deployment.id, "config_id": deployment.config_id}
        at = context.tx.now + timedelta(seconds=properties["timeout"]) + GRACE
        context.services.work.defer(context.tx, DEADLINE, deployment.config_id, args, at=at)
    data = {**resource.data, "signal_transport": run.signal_transport, "runs": _runs(resource) + 1}
    return Outcome(done=not run.awaits_signal, physical_id=deployment.id, data=data)


def _runs(resource: Resource) -> int:
    """How many it has begun."""
    return int(resource.data.get("runs") or 0)


def _existing(context: Context, resource: Resource) -> Deployment | None:
    return deployments.find(context.tx, resource.physical_id) if resource.physical_id else None


def _remove(context: Context, resource: Resource, deployment: Deployment) -> Outcome:
    context.services.work.cancel(context.tx, DEADLINE, deployment.config_id)
    manage.withdraw(context.tx, deployment)
    configs.delete(context.tx, deployment.config_id)
    transport = context.services.transports.signalling.get(resource.data.get("signal_transport") or "")
    if isinstance(transport, Lodging):
        transport.close(context.tx, context.services.site, party_of(context, resource))
    return DONE
