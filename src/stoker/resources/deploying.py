"""What SoftwareDeployment and StructuredDeployment share: runs of a config on a server, and their end."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from stoker import transports
from stoker.deployments import manage, runs, stopping
from stoker.deployments.alone import RUN
from stoker.deployments.deadlines import call_off
from stoker.deployments.derive import must_replace
from stoker.hot import UNKNOWN
from stoker.hot.words import clip
from stoker.model.errors import StackValidationFailed
from stoker.model.stack import Resource
from stoker.model.status import Action, Status
from stoker.resources import running
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
)
from stoker.resources.properties import Property
from stoker.store import configs, deployments

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


def create(context: Context, resource: Resource, properties: Properties, render: running.Render) -> Outcome:
    """Also a failed deployment's next try: same deployment, new run."""
    source = running.source_of(context, properties)
    if not running.is_triggered(source, properties, Action.CREATE):
        return DONE
    run = running.plan(context, resource, properties, Action.CREATE, source, render)
    return running.begin(context, resource, properties, run)


def update(context: Context, resource: Resource, properties: Properties, render: running.Render) -> Outcome:
    source = running.source_of(context, properties)
    if not running.is_triggered(source, properties, Action.UPDATE):
        return DONE
    run = running.plan(context, resource, properties, Action.UPDATE, source, render)
    old = running.existing(context, resource)
    before = configs.find(context.tx, old.config_id) if old else None
    if before is not None and (name := must_replace(before.inputs, run.inputs)):
        raise Replace(f"input {name} changed")
    return running.begin(context, resource, properties, run)


def delete(context: Context, resource: Resource, render: running.Render) -> Outcome:
    old = running.existing(context, resource)
    if old is None:
        return DONE
    properties = resource.properties
    if not running.deletes_on_server(context, old, properties):
        return running.remove(context, resource, old)
    source = running.source_of(context, properties)
    run = running.plan(context, resource, properties, Action.DELETE, source, render)
    outcome = running.begin(context, resource, properties, run)
    return check(context, resource) if outcome.done else outcome


def check(context: Context, resource: Resource) -> Outcome:
    """Whether the current run has ended, and how. Raises ResourceFailure."""
    deployment = running.existing(context, resource)
    if deployment is None:
        return DONE
    if deployment.status == Status.IN_PROGRESS:
        return Outcome(done=False)
    if deployment.status == Status.FAILED:
        raise ResourceFailure(f"Deployment to server failed: {deployment.status_reason}")
    return running.remove(context, resource, deployment) if resource.action is Action.DELETE else DONE


def attribute(context: Context, resource: Resource, name: str) -> Any:
    deployment = running.existing(context, resource)
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
    deployment = running.existing(context, resource)
    if deployment is None:
        return Signalled("no deployment to signal")
    # Our agent says which run it speaks of, whatever the transport.
    if details.get(RUN, deployment.config_id) != deployment.config_id:
        return Signalled(f"deployment {deployment.id}: late, of an earlier run")
    said = {name: value for name, value in details.items() if name != RUN}
    settled = manage.take_signal(context.tx, deployment, said, context.log_bytes)
    if settled.status != Status.IN_PROGRESS:
        call_off(context.tx, context.services.work, settled)
    if runs.is_progress(said):
        return Signalled(f"deployment {settled.id} goes on")
    if settled.status != Status.FAILED:
        return Signalled(f"deployment {settled.id} succeeded")
    code = settled.output_values.get("deploy_status_code")
    return Signalled(f"deployment {settled.id} failed" + (f" ({code})" if code else ""))


def actions(render: running.Render) -> Mapping[Action, Callable[[Context, Resource], Outcome]]:
    """SUSPEND and RESUME run the config where the deployment says so."""

    def doing(action: Action) -> Callable[[Context, Resource], Outcome]:
        def do(context: Context, resource: Resource) -> Outcome:
            if not resource.properties:
                return DONE  # it never began
            source = running.source_of(context, resource.properties)
            if not running.is_triggered(source, resource.properties, action):
                return DONE
            run = running.plan(context, resource, resource.properties, action, source, render)
            return running.begin(context, resource, resource.properties, run)

        return do

    return {action: doing(action) for action in (Action.SUSPEND, Action.RESUME)}


def adopt(context: Context, resource: Resource, _properties: Properties) -> Outcome:
    """Raises ResourceFailure when the deployment is gone or another stack's."""
    deployment = running.existing(context, resource)
    if deployment is None or deployment.project_id != context.project_id or deployment.stack_id is not None:
        raise ResourceFailure(f"The deployment ({resource.physical_id}) is not there to be adopted.")
    deployments.relink(context.tx, deployment.id, context.stack_id, resource.id)
    return check(context, resource)


def exists(context: Context, id: str) -> bool:
    found = deployments.find(context.tx, id)
    return found is not None and found.project_id == context.project_id


def cancel(context: Context, resource: Resource) -> None:
    """Heat's words; the run's entry leaves the server's document, so its agent ends it."""
    deployment = running.existing(context, resource)
    if deployment is not None:
        call_off(context.tx, context.services.work, deployment)
        stopping.give_up(context.tx, deployment, "Deployment cancelled.")


def validate(properties: Properties) -> None:
    wanted = properties["signal_transport"]
    known = transports.load().signal_names
    if wanted not in (UNKNOWN, None, *known):
        raise StackValidationFailed(
            f"signal_transport: {clip(repr(wanted))} is not an allowed value [{', '.join(known)}]"
        )
