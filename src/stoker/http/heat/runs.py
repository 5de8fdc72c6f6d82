"""/v1/{project}/software_deployments/{id}/runs: the runs of a deployment; cancel, retry and signal (Stoker's own)."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import Any

from stoker.deployments import representation
from stoker.http import params
from stoker.http.heat import serializers
from stoker.http.request_context import RequestContext, Response
from stoker.model.deployment import Deployment, Run
from stoker.model.errors import EntityNotFound
from stoker.stacks import deployment_actions, signals
from stoker.store import deployments, runs
from stoker.store.tx import Tx


def index(request: RequestContext) -> Response:
    """List the runs of a deployment."""
    with request.app.store.read() as tx:
        found = runs.list_all(tx, _deployment(tx, request).id)
    now = datetime.now(UTC)
    return Response(200, {"runs": [serialize(tx, each, now) for each in found]})


def cancel(request: RequestContext) -> Response:
    """Cancel the current run. It ends when the agent has stopped it, or with ``force`` at once. Raises Conflict."""
    force = bool(params.flag(params.optional_body(request).get("force"), "force"))

    def do(tx: Tx) -> Response:
        held = _deployment(tx, request)
        return _accept(tx, deployment_actions.cancel(tx, request.app.engine, held, request.user.user_name, force=force))

    return request.app.store.write(do)


def retry(request: RequestContext) -> Response:
    """Run a failed deployment again. A deployment of a stack is retried by an update of the stack. Raises Conflict."""
    params.optional_body(request)

    def do(tx: Tx) -> Response:
        return _accept(
            tx, deployment_actions.retry(tx, request.app.engine, _deployment(tx, request), request.user.user_name)
        )

    return request.app.store.write(do)


def signal(request: RequestContext) -> Response:
    """Apply a signal from a project member, the server's agent, or a client with the signal URL."""
    details = params.optional_body(request)

    def do(tx: Tx) -> Deployment:
        known = _find_signal_target(tx, request)
        return signals.signal_by_id(tx, request.app.engine, known, details, run=request.query.get("run"))

    return Response(200, {"status": request.app.store.write(do).status})


def serialize(tx: Tx, run: Run, now: datetime) -> dict[str, Any]:
    """Serialize a run. ``now`` determines whether the run is unresponsive, and for how long."""
    silent = run.unresponsive_for(now)
    return {
        "number": run.number,
        "config_id": run.config_id,
        "action": run.action,
        "state": run.state_at(now),
        "unresponsive_seconds": None if silent is None else int(silent.total_seconds()),
        "percent": run.percent,
        "message": run.message,
        "last_heartbeat": serializers.time(run.last_heartbeat_at),
        "queued_time": serializers.time(run.queued_at),
        "delivered_time": serializers.time(run.delivered_at),
        "channel": run.channel,
        "start_time": serializers.time(run.started_at),
        "end_time": serializers.time(run.ended_at),
        "status": run.status,
        "status_code": run.status_code,
        "status_reason": run.status_reason,
        "requested_by": run.requested_by,
        "input_values": tx.secrets.redact(dict(run.input_values)),
        "output_values": tx.secrets.redact(dict(run.output_values)),
        "stdout_bytes": run.stdout_bytes,
        "stderr_bytes": run.stderr_bytes,
    }


def _find_signal_target(tx: Tx, request: RequestContext) -> Deployment:
    """
    Return the deployment of the path.

    Raises EntityNotFound, also if the caller may not signal the deployment: agents and users of deployments must not
    find out which other deployments exist.
    """
    if request.agent is None:
        deployment = _deployment(tx, request)
        allowed = request.only in (None, deployment.id, deployment.resource_id)
    else:
        # An agent may report runs of other projects, too, if the server's policy admits their deployments.
        deployment = deployments.get(tx, request.path["deployment_id"])
        allowed = deployments.is_of(tx, deployment.id, request.agent)
    if not allowed:
        raise EntityNotFound.of("Software deployment", deployment.id)
    return deployment


def _deployment(tx: Tx, request: RequestContext) -> Deployment:
    return deployments.get(tx, request.path["deployment_id"], request.project)


def _accept(tx: Tx, deployment: Deployment) -> Response:
    return Response(202, {"software_deployment": representation.deployment(tx, deployment)})
