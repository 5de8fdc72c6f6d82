"""
Shared functions of SoftwareDeployment and StructuredDeployment: start runs of a config on a server and apply their
results.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from stoker import transports
from stoker.deployments import cancellation, representation, runs, service
from stoker.deployments.deadlines import cancel_deadline
from stoker.deployments.derive import must_replace
from stoker.deployments.standalone import RUN
from stoker.hot import UNKNOWN
from stoker.hot.words import clip
from stoker.model.errors import StackValidationFailed
from stoker.model.server import LONGEST_ID
from stoker.model.stack import Resource
from stoker.model.status import Action, Status
from stoker.resources import deployment_runs
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


def create(context: Context, resource: Resource, properties: Properties, render: deployment_runs.Render) -> Outcome:
    """Start the first run, or another run of the same deployment if an earlier create failed."""
    source = deployment_runs.source_of(context, properties)
    if not deployment_runs.is_triggered(source, properties, Action.CREATE):
        return DONE
    run = deployment_runs.plan(context, resource, properties, Action.CREATE, source, render)
    return deployment_runs.begin(context, resource, properties, run)


def update(context: Context, resource: Resource, properties: Properties, render: deployment_runs.Render) -> Outcome:
    """Start another run of the deployment. Raises Replace if an input with ``replace_on_change`` changed."""
    source = deployment_runs.source_of(context, properties)
    if not deployment_runs.is_triggered(source, properties, Action.UPDATE):
        return DONE
    run = deployment_runs.plan(context, resource, properties, Action.UPDATE, source, render)
    old = deployment_runs.find_deployment(context, resource)
    before = configs.find(context.tx, old.config_id) if old else None
    if before is not None and (name := must_replace(before.inputs, run.inputs)):
        raise Replace(f"input {name} changed")
    return deployment_runs.begin(context, resource, properties, run)


def delete(context: Context, resource: Resource, render: deployment_runs.Render) -> Outcome:
    """Run the config for DELETE if the deployment requires it, then remove the deployment."""
    old = deployment_runs.find_deployment(context, resource)
    properties = resource.properties
    if old is None or not deployment_runs.deletes_on_server(context, old, properties):
        return deployment_runs.remove(context, resource, old)
    source = deployment_runs.source_of(context, properties)
    run = deployment_runs.plan(context, resource, properties, Action.DELETE, source, render)
    outcome = deployment_runs.begin(context, resource, properties, run)
    return check(context, resource) if outcome.done else outcome


def check(context: Context, resource: Resource) -> Outcome:
    """Return whether the current run has ended. Raises ResourceFailure if the run failed."""
    deployment = deployment_runs.find_deployment(context, resource)
    if deployment is None:
        return deployment_runs.remove(context, resource, None) if resource.action is Action.DELETE else DONE
    if not deployment.has_ended:
        return Outcome(done=False)
    if deployment.status == Status.FAILED:
        raise ResourceFailure(f"Deployment to server failed: {deployment.status_reason}")
    return deployment_runs.remove(context, resource, deployment) if resource.action is Action.DELETE else DONE


def attribute(context: Context, resource: Resource, name: str) -> Any:
    deployment = deployment_runs.find_deployment(context, resource)
    if deployment is None:
        return None
    if name in deployment.output_values:
        return deployment.output_values[name]
    config = configs.find(context.tx, deployment.config_id)
    declared = {output["name"] for output in config.outputs} if config else set()
    if name in ATTRIBUTES or name in declared:
        return None  # the run has not reported it yet
    raise NoSuchAttribute(name)


def show(context: Context, resource: Resource) -> Any:
    deployment = deployment_runs.find_deployment(context, resource)
    return None if deployment is None else representation.deployment(context.tx, deployment)


def signal(context: Context, resource: Resource, details: Mapping[str, Any]) -> Signalled:
    """Apply a result or a progress report to the deployment; ignore a report of an earlier run."""
    deployment = deployment_runs.find_deployment(context, resource)
    if deployment is None:
        return Signalled("no deployment to signal")
    # With every transport, Stoker's agent names the run that it reports.
    if details.get(RUN, deployment.config_id) != deployment.config_id:
        return Signalled(f"deployment {deployment.id}: late, of an earlier run")
    said = {name: value for name, value in details.items() if name != RUN}
    settled = service.apply_signal(context.tx, deployment, said, context.log_bytes)
    if settled.status != Status.IN_PROGRESS:
        cancel_deadline(context.tx, context.env.work, settled)
    if runs.is_progress(said):
        return Signalled(f"deployment {settled.id} goes on")
    if settled.status != Status.FAILED:
        return Signalled(f"deployment {settled.id} succeeded")
    code = settled.output_values.get("deploy_status_code")
    return Signalled(f"deployment {settled.id} failed" + (f" ({code})" if code else ""))


def actions(render: deployment_runs.Render) -> Mapping[Action, Callable[[Context, Resource], Outcome]]:
    """
    Return the handlers of SUSPEND and RESUME, which run the config if the deployment's ``actions`` contain the action.
    """

    def doing(action: Action) -> Callable[[Context, Resource], Outcome]:
        def do(context: Context, resource: Resource) -> Outcome:
            if not resource.properties:
                return DONE  # the resource was never created
            source = deployment_runs.source_of(context, resource.properties)
            if not deployment_runs.is_triggered(source, resource.properties, action):
                return DONE
            run = deployment_runs.plan(context, resource, resource.properties, action, source, render)
            return deployment_runs.begin(context, resource, resource.properties, run)

        return do

    return {action: doing(action) for action in (Action.SUSPEND, Action.RESUME)}


def adopt(context: Context, resource: Resource, _properties: Properties) -> Outcome:
    """
    Link an existing deployment to this resource.

    Raises ResourceFailure if the deployment does not exist or belongs to a stack.
    """
    deployment = deployment_runs.find_deployment(context, resource)
    if deployment is None or deployment.project_id != context.project_id or deployment.stack_id is not None:
        raise ResourceFailure(f"The deployment ({resource.physical_id}) is not there to be adopted.")
    deployments.relink(context.tx, deployment.id, context.stack_id, resource.id)
    return check(context, resource)


def exists(context: Context, id: str) -> bool:
    found = deployments.find(context.tx, id)
    return found is not None and found.project_id == context.project_id


def cancel(context: Context, resource: Resource) -> None:
    """Fail the run with Heat's message. The run leaves the server's document, so the agent stops it."""
    deployment = deployment_runs.find_deployment(context, resource)
    if deployment is not None:
        cancel_deadline(context.tx, context.env.work, deployment)
        cancellation.force_fail(context.tx, deployment, "Deployment cancelled.")


def validate(properties: Properties) -> None:
    wanted = properties["signal_transport"]
    known = transports.load().signal_names
    if wanted not in (UNKNOWN, None, *known):
        raise StackValidationFailed(
            f"signal_transport: {clip(repr(wanted))} is not an allowed value [{', '.join(known)}]"
        )
