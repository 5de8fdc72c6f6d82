"""/v1/{project}/software_deployments/{id}/runs: the runs of a deployment; cancel, retry and signal (Stoker's own)."""

from __future__ import annotations

from typing import Annotated, Any

from msgspec import UNSET, Meta, field

from stoker.deployments import service
from stoker.deployments.runs import log_unknown
from stoker.http.contracts import Absent, Answer, Body, Count, Id, Query, Time, fill, operation
from stoker.http.heat.deployments import SoftwareDeployment, enclose, find_described
from stoker.http.request import RequestContext
from stoker.model.deployment import Deployment, Run, RunState
from stoker.model.errors import EntityNotFound
from stoker.stacks import repetition, signals
from stoker.store import deployments, runs
from stoker.store.tx import Tx


class RunChange(Answer):
    """A part of the server that a run changed, or failed to change, with the difference as text."""

    item: str | Absent = UNSET
    outcome: Annotated[str, Meta(description="changed, failed or omitted")] | Absent = UNSET
    diff: str | Absent = UNSET


class DeploymentRun(Answer):
    """One execution of a deployment, from the request to the result."""

    number: Count
    config_id: Id
    action: str | None
    mode: Annotated[str | None, Meta(description="preview or undo; null if the run applies the config")]
    state: RunState
    unresponsive_seconds: Annotated[
        int | None, Meta(description="The time since the agent's last report, if that is too long ago")
    ]
    percent: int | None
    message: str | None
    last_heartbeat_at: Time | None = field(name="last_heartbeat")
    queued_at: Time = field(name="queued_time")
    delivered_at: Time | None = field(name="delivered_time")
    channel: Annotated[str | None, Meta(description="The transport that delivered the run")]
    started_at: Time | None = field(name="start_time")
    ended_at: Time | None = field(name="end_time")
    status: str | None
    status_code: str | None
    status_reason: str | None
    requested_by: Annotated[str | None, Meta(description="The user; null for an action of a stack")]
    input_values: Annotated[dict[str, Any], Meta(description="The values of secret inputs are redacted")]
    output_values: Annotated[dict[str, Any], Meta(description="Without the output that the log contains")]
    changed: Annotated[bool | None, Meta(description="Whether the run changed the server; null if not known")]
    changes: list[RunChange]
    stdout_bytes: Count
    stderr_bytes: Count


class Cancellation(Body):
    """With ``force``, the run ends without waiting for the agent."""

    force: bool | None = None


class SignalQuery(Query):
    token: Annotated[str | None, Meta(description="The token of the config's signal URL, in place of X-Auth-Token")] = (
        None
    )
    run: Annotated[str | None, Meta(description="The number of the run; results of earlier runs are ignored")] = None


@operation(200, {"runs": list[DeploymentRun]})
def index(request: RequestContext, tx: Tx) -> dict[str, Any]:
    """List the runs of a deployment, newest first."""
    history = runs.list_all(tx, _deployment(tx, request))
    return {"runs": [serialize(tx, run) for run in history]}


@operation(202, {"software_deployment": SoftwareDeployment}, errors=(409,), body_optional=True)
def cancel(request: RequestContext, tx: Tx, body: Cancellation) -> dict[str, Any]:
    """Cancel the current run. It ends when the agent has stopped it, or with ``force`` at once. Raises Conflict."""
    deployment, env = find_described(tx, request), request.app.engine.env
    return enclose(tx, service.cancel(tx, env, deployment, request.user.user_name, force=bool(body.force)))


@operation(202, {"software_deployment": SoftwareDeployment}, errors=(409,), body_optional=True)
def retry(
    request: RequestContext,
    tx: Tx,
    body: Body,  # noqa: ARG001  # an object is required, if anything
) -> dict[str, Any]:
    """Run a failed deployment again. A deployment of a stack is retried by an update of the stack. Raises Conflict."""
    deployment = find_described(tx, request)
    return enclose(tx, repetition.retry(tx, request.app.engine, deployment, request.user.user_name))


@operation(200, {"status": str | None}, body_optional=True)
def signal(request: RequestContext, tx: Tx, body: dict[str, Any], query: SignalQuery) -> dict[str, Any]:
    """
    Apply a signal from a project member, the server's agent, or a client with the signal URL.

    The body contains deploy_stdout, deploy_stderr, deploy_status_code and the config's outputs.
    """
    with log_unknown(request.path["deployment_id"], query.run):
        deployment = _find_signal_target(tx, request)
        status = signals.deliver(tx, request.app.engine, deployment, body, number=query.run)
    return {"status": status}


def serialize(tx: Tx, run: Run) -> DeploymentRun:
    silence = run.unresponsive_for(tx.now)
    return fill(
        DeploymentRun,
        run,
        state=run.state_at(tx.now),
        unresponsive_seconds=None if silence is None else int(silence.total_seconds()),
        input_values=tx.secrets.redact(dict(run.input_values)),
        output_values=tx.secrets.redact(dict(run.output_values)),
        changes=[RunChange(**tx.secrets.redact(dict(change))) for change in run.changes],
    )


def _find_signal_target(tx: Tx, request: RequestContext) -> Deployment:
    """
    Return the deployment of the path.

    Raises EntityNotFound, also if the caller may not signal the deployment: agents and users of deployments must not
    find out which other deployments exist.
    """
    if request.caller.server is None:
        deployment = _deployment(tx, request)
        allowed = request.caller.resource in (None, deployment.id, deployment.resource_id)
    else:
        # An agent may report runs of other projects, too, if the server's policy admits their deployments.
        deployment = deployments.get(tx, request.path["deployment_id"])
        allowed = deployments.is_of(tx, deployment.id, request.caller.server)
    if not allowed:
        raise EntityNotFound.of("Software deployment", deployment.id)
    return deployment


def _deployment(tx: Tx, request: RequestContext) -> Deployment:
    return deployments.get(tx, request.path["deployment_id"], request.project)
