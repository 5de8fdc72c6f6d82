"""What SoftwareDeployment and StructuredDeployment have in common: runs of a config on a server, and their results."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from typing import Any

from msgspec.structs import replace

from stoker.deployments import checks, run_end, runs
from stoker.deployments.derive import derived_inputs, redact_deployment, replaces_deployment
from stoker.deployments.run_plan import describe_failure, find_undo
from stoker.deployments.runs import RUN, is_progress
from stoker.hot import UNKNOWN, Definition
from stoker.model.config import Content
from stoker.model.deployment import ENFORCE, INTERVAL, LONGEST_INTERVAL, SHORTEST_INTERVAL, Deployment
from stoker.model.server import LONGEST_ID
from stoker.model.stack import CREATED, Action, Resource, Status
from stoker.resources.base import (
    DONE,
    LONGEST_WAIT,
    AdoptionFailure,
    Context,
    KnowsAgent,
    NoSuchAttribute,
    Outcome,
    Properties,
    ResourceFailure,
    ResourceType,
    Signalled,
    TakesSignals,
    is_created,
)
from stoker.resources.properties import Property
from stoker.resources.roles import RunsConfig
from stoker.stacks.engine import Engine
from stoker.store import configs, deployments, resources, servers
from stoker.types import deployment_runs
from stoker.types.deployment_runs import APPLIED

PROPERTIES: Mapping[str, Property] = {
    "config": Property(kind="string", update_allowed=True, description="Id of the config to run."),
    "server": Property(
        kind="string",
        required=True,
        longest=LONGEST_ID,
        description="Id of the server to run it on, or the name of an enrolled server (Stoker's own).",
    ),
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
        is_setting=True,
        description="Name of the derived config. Runs on a server start in the order of these names.",
    ),
    "signal_transport": Property(kind="string", description="How the server reports the result."),
    "timeout": Property(
        kind="number",
        minimum=1,
        maximum=LONGEST_WAIT,
        update_allowed=True,
        is_setting=True,
        description="Seconds after which the run is ended and has failed (Stoker's own).",
    ),
    INTERVAL: Property(
        kind="number",
        minimum=SHORTEST_INTERVAL,
        maximum=LONGEST_INTERVAL,
        update_allowed=True,
        is_setting=True,
        description="Seconds between two checks for drift; default: the config's option (Stoker's own).",
    ),
    ENFORCE: Property(
        kind="boolean",
        update_allowed=True,
        is_setting=True,
        description="Whether drift runs the config again; default: the config's option (Stoker's own).",
    ),
    "on_interrupt": Property(
        kind="string",
        allowed=("FAIL", "RERUN"),
        update_allowed=True,
        is_setting=True,
        description="What an agent that was killed during the run does with it when it is back (Stoker's own).",
    ),
}

ATTRIBUTES: Mapping[str, str] = {
    "deploy_stdout": "Captured standard output.",
    "deploy_stderr": "Captured standard error.",
    "deploy_status_code": "The exit code.",
}


#: Properties whose change runs nothing.
SETTINGS = frozenset(name for name, schema in PROPERTIES.items() if schema.is_setting)
#: Most characters of the line of standard error in the reason of a failure.
_LONGEST_LINE = 500


def choose_action(resource: Resource, content: Content | None, properties: Properties) -> Action:
    """Return the action of ``next_action`` for a content, which is None as long as it is not known."""
    if resource.action is not Action.DELETE and resource.data.get(CREATED, is_created(resource)):
        return Action.UPDATE
    is_triggered = content is None or deployment_runs.is_triggered(content, properties, Action.CREATE)
    return Action.CREATE if is_triggered else Action.UPDATE


def _locate(context: Context, deployment: Deployment, reason: str) -> str:
    """
    Return ``reason`` with the name of the server and the last line of standard error.

    The events of the stack keep both, after a rollback has run the deployment again or removed it.
    """
    server = servers.find(context.tx, deployment.server_id)
    lines = str(deployment.output_values.get("deploy_stderr") or "").split("\n")
    line = next((line.strip()[:_LONGEST_LINE] for line in reversed(lines) if line.strip()), "")
    where = f"{reason} on {server.name}" if server is not None else reason
    return where if not line or line in reason else f"{where}: {line}"


def _run(context: Context, resource: Resource, properties: Properties, action: Action) -> Outcome:
    """Start a run if this action of the stack runs the config."""
    if properties["config"]:
        servers.prime_with_config(context.tx, properties["server"], properties["config"])
    content = deployment_runs.content_for(context, properties)
    if not deployment_runs.is_triggered(content, properties, action):
        return DONE
    return deployment_runs.start(context, resource, properties, action, content)


def _remove(context: Context, resource: Resource, deployment: Deployment | None) -> Outcome:
    """Delete the deployment, unless a user has deleted it already, and the transport's object or queue."""
    if deployment is not None:
        run_end.withdraw(context.tx, context.env, deployment)
    deployment_runs.close(context, resource)
    return DONE


def _declared(context: Context, deployment: Deployment) -> list[str]:
    config = configs.find(context.tx, deployment.config_id)
    return [output["name"] for output in config.outputs] if config else []


class DeploymentType(RunsConfig, TakesSignals, KnowsAgent, ResourceType):
    """The type of a deployment of one config on one server."""

    properties: Mapping[str, Property] = PROPERTIES
    attributes = None
    actions = (Action.SUSPEND, Action.RESUME)
    retries = True
    repeats_update = True
    agents_transport = "signal_transport"

    def create(self, context: Context, resource: Resource, properties: Properties) -> Outcome:
        """Start the first run, or another run of the same deployment if no CREATE has completed yet."""
        outcome = _run(context, resource, properties, Action.CREATE)
        if outcome is DONE:
            return Outcome(data={**resource.data, CREATED: False})
        return replace(outcome, data={**(outcome.data or {}), CREATED: outcome.done})

    def next_action(self, context: Context, resource: Resource, properties: Properties) -> Action:
        """
        Return CREATE until a CREATE run of the deployment has completed on its server, and UPDATE from then on.

        After a DELETE that has failed, the deployment has to be created again.
        """
        return choose_action(resource, deployment_runs.content_for(context, properties), properties)

    def update(self, context: Context, resource: Resource, properties: Properties) -> Outcome:
        """Start another run of the deployment, unless only settings changed, which apply to its next run."""
        changed = {name for name, value in properties.items() if resource.properties.get(name) != value}
        if changed and changed <= SETTINGS:
            content = deployment_runs.content_for(context, properties)
            deployment_runs.configure_checks(context, resource, properties, content)
            return DONE
        return self.retry(context, resource, properties)

    def retry(self, context: Context, resource: Resource, properties: Properties) -> Outcome:
        """Start an UPDATE run of the deployment."""
        return _run(context, resource, properties, Action.UPDATE)

    def must_replace(self, context: Context, resource: Resource, properties: Properties) -> bool:
        """Return whether an input with ``replace_on_change`` changes, as far as its value is known."""
        deployment = deployment_runs.find_deployment(context, resource)
        before = configs.find(context.tx, deployment.config_id) if deployment else None
        after = configs.find(context.tx, properties["config"]) if isinstance(properties["config"], str) else None
        values = properties["input_values"] or {}
        if before is None or not isinstance(values, Mapping):
            return False
        unknown = {name for name, value in values.items() if value is UNKNOWN}
        inputs = derived_inputs((after or before).inputs, values, {})
        return replaces_deployment(before.inputs, [entry for entry in inputs if entry["name"] not in unknown])

    def normalize(self, context: Context, properties: Properties) -> Properties:
        """Return the properties with the server's id in place of its name."""
        if not isinstance(properties["server"], str):
            return properties
        server_id = servers.resolve_id(context.tx, context.project_id, properties["server"])
        return {**properties, "server": server_id}

    def delete(self, context: Context, resource: Resource) -> Outcome:
        """Run the config for DELETE, or undo the deployment, if one of them is required. Then remove the deployment."""
        deployment = deployment_runs.find_deployment(context, resource)
        if deployment is None:
            return _remove(context, resource, None)
        if content := deployment_runs.find_deletion(context, deployment, resource.properties):
            outcome = deployment_runs.start(context, resource, resource.properties, Action.DELETE, content)
        elif undo := find_undo(context.tx, deployment, resource.properties["timeout"]):
            properties = {**resource.properties, "input_values": undo.input_values, "timeout": undo.timeout}
            outcome = deployment_runs.start(context, resource, properties, Action.DELETE, undo.content, undo)
        else:
            return _remove(context, resource, deployment)
        return self.check(context, resource) if outcome.done else outcome

    def check(self, context: Context, resource: Resource) -> Outcome:
        """Return whether the current run has ended. Raises ResourceFailure if the run failed."""
        deployment = deployment_runs.find_deployment(context, resource)
        if deployment is not None and not deployment.has_ended:
            return Outcome(done=False)
        if deployment is not None and deployment.status == Status.FAILED:
            is_deletion = resource.action is Action.DELETE
            reason = describe_failure(context.tx, deployment) if is_deletion else deployment.status_reason
            raise ResourceFailure(f"Deployment to server failed: {_locate(context, deployment, reason or '')}")
        if resource.action is Action.DELETE:
            return _remove(context, resource, deployment)
        reported = context.changed  # only the run that has just ended explains this action
        reason = (reported.change_summary if reported is not None else None) or ""
        data = dict(resource.data)
        data.pop(APPLIED, None)
        if resource.action is Action.CREATE and deployment is not None:
            data[CREATED] = True
        return Outcome(data=data, reason=reason)

    def act(self, context: Context, resource: Resource, action: Action) -> Outcome:
        """
        Run the config for SUSPEND or RESUME if the deployment's ``actions`` contain it.

        A suspended deployment is not remediated: SUSPEND ends a remediation in progress, RESUME continues with what
        drifts.
        """
        if not resource.properties:
            return DONE  # the resource was never created
        outcome = _run(context, resource, resource.properties, action)
        deployment = deployment_runs.find_deployment(context, resource)
        if deployment is None or not outcome.done:
            return outcome
        if action is Action.RESUME:
            checks.resume(context.tx, context.env.work, deployment)
        elif deployment.status == Status.IN_PROGRESS:
            run_end.cancel(context.tx, context.env.work, deployment, "Cancelled: the stack is suspended")
        return outcome

    def attribute_names(self, context: Context, resource: Resource) -> Iterable[str]:
        """Return also outputs without a value, and values that are no outputs."""
        deployment = deployment_runs.find_deployment(context, resource)
        if deployment is None:
            return ()
        return {**ATTRIBUTES, **dict.fromkeys(_declared(context, deployment)), **deployment.output_values}

    def attribute(self, context: Context, resource: Resource, name: str) -> Any:
        deployment = deployment_runs.find_deployment(context, resource)
        if deployment is None:
            return None
        if name in deployment.output_values:
            return deployment.output_values[name]
        if name in ATTRIBUTES or name in _declared(context, deployment):
            return None  # the run has not reported it yet
        raise NoSuchAttribute(name)

    def show(self, context: Context, resource: Resource) -> Any:
        deployment = deployment_runs.find_deployment(context, resource)
        return None if deployment is None else redact_deployment(context.tx, deployment)

    def signal(self, context: Context, resource: Resource, details: Mapping[str, Any]) -> Signalled:
        """Apply a result or a progress report to the deployment; ignore a report of an earlier run."""
        deployment = deployment_runs.find_deployment(context, resource)
        if deployment is None:
            return Signalled("no deployment to signal")
        # With every transport, Stoker's agent names the run that it reports.
        if details.get(RUN, deployment.config_id) != deployment.config_id:
            runs.log_rejection(context.tx, deployment.id, details[RUN], runs.SUPERSEDED)
            return Signalled(f"deployment {deployment.id}: late, of an earlier run")
        engine: Engine = context.engine
        changed = run_end.signal(context.tx, context.env, deployment, details, engine.limits.log_bytes)
        if is_progress(details):
            return Signalled(f"deployment {changed.id} goes on")
        if changed.status != Status.FAILED:
            return Signalled(f"deployment {changed.id} succeeded")
        code = changed.output_values.get("deploy_status_code")
        return Signalled(f"deployment {changed.id} failed" + (f" ({code})" if code else ""))

    def adopt(self, context: Context, resource: Resource, properties: Properties) -> Outcome:
        """Link an existing deployment to this resource. Raises AdoptionFailure."""
        deployment = deployment_runs.find_deployment(context, resource)
        if deployment is None or deployment.project_id != context.project_id or deployment.stack_id is not None:
            raise AdoptionFailure("deployment", resource.physical_id)
        deployments.update(context.tx, deployment.id, stack_id=context.stack_id, resource_id=resource.id)
        return self.check(context, resource)

    def exists(self, context: Context, id: str) -> bool:
        deployment = deployments.find(context.tx, id)
        return deployment is not None and deployment.project_id == context.project_id

    def cancel(self, context: Context, resource: Resource) -> None:
        """Fail the run with Heat's message. The run leaves the server's document, so the agent stops it."""
        deployment = deployment_runs.find_deployment(context, resource)
        if deployment is not None:
            run_end.force_fail(context.tx, context.env.work, deployment, "Deployment cancelled.")

    def may_return(self, resource: Resource, replacement: Resource) -> bool:
        """Return whether the replacement ran elsewhere: on the same server, only another run restores the server."""
        return bool(resource.properties.get("server") != replacement.properties.get("server"))

    def predecessors(self, context: Context, definition: Definition, properties: Properties) -> Iterator[str]:
        """
        Yield the ids of the stack's resources whose removal runs something on the same server, if they have the same
        name or the same config.
        """
        content = deployment_runs.content_for(context, properties)
        for deployment in deployments.of_stack_on_server(context.tx, context.stack_id, properties["server"]):
            resource = resources.find(context.tx, deployment.resource_id or "")
            if resource is not None and deployment_runs.is_former(context, resource, definition.name, content):
                yield resource.id

    def retain(self, context: Context, resource: Resource) -> None:
        deployment_runs.close(context, resource)

    def reached_by(self, context: Context, resource: Resource, properties: Properties) -> tuple[str, bool]:
        transport = deployment_runs.choose_transport(context, resource, properties)
        return transport.signal_name, deployment_runs.has_own_agent(context, properties)
