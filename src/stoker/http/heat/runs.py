"""/v1/{project}/software_deployments/{id}: its runs, and what is done with the one under way (Stoker's own)."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import Any

from stoker.http import reading
from stoker.http.call import Call, Reply
from stoker.http.heat import shapes
from stoker.model.deployment import Deployment, Run
from stoker.model.errors import Forbidden
from stoker.stacks import deployed, signals
from stoker.store import deployments, runs
from stoker.store.tx import Tx


def index(call: Call) -> Reply:
    with call.services.store.read() as tx:
        found = runs.listed(tx, _deployment(tx, call).id)
    now = datetime.now(UTC)
    return Reply(200, {"runs": [shown(each, now) for each in found]})


def cancel(call: Call) -> Reply:
    force = bool(reading.flag(reading.optional_body(call).get("force"), "force"))

    def do(tx: Tx) -> Deployment:
        return deployed.cancel(tx, call.services.engine, _deployment(tx, call), call.user.user_name, force=force)

    return _accepted(call.services.store.write(do))


def retry(call: Call) -> Reply:
    reading.optional_body(call)

    def do(tx: Tx) -> Deployment:
        return deployed.retry(tx, call.services.engine, _deployment(tx, call), call.user.user_name)

    return _accepted(call.services.store.write(do))


def signal(call: Call) -> Reply:
    """Of the project's members, the server's own agent, and whoever was given the URL."""
    details = reading.optional_body(call)

    def do(tx: Tx) -> Deployment:
        if call.agent is not None:
            known = deployments.get(tx, call.path["deployment_id"])
            # An agent may report what its server runs, also of another project whose deployment is let in.
            if not deployments.is_of(tx, known.id, call.agent):
                raise Forbidden("You are not authorized to complete this action.")
        else:
            known = _deployment(tx, call)
            if call.only not in (None, known.id, known.resource_id):
                raise Forbidden("You are not authorized to complete this action.")
        return signals.signal_by_id(tx, call.services.engine, known, details, run=call.query.get("run"))

    return Reply(200, {"status": call.services.store.write(do).status})


def shown(run: Run, now: datetime) -> dict[str, Any]:
    silent = run.silent_for(now)
    return {
        "number": run.number,
        "config_id": run.config_id,
        "action": run.action,
        "state": run.state_at(now),
        "silent_seconds": None if silent is None else int(silent.total_seconds()),
        "percent": run.percent,
        "message": run.message,
        "heard_time": shapes.time(run.heard_at),
        "queued_time": shapes.time(run.queued_at),
        "delivered_time": shapes.time(run.delivered_at),
        "channel": run.channel,
        "start_time": shapes.time(run.started_at),
        "end_time": shapes.time(run.ended_at),
        "status": run.status,
        "status_code": run.status_code,
        "status_reason": run.status_reason,
        "asked_by": run.asked_by,
        "input_values": dict(run.input_values),
        "output_values": dict(run.output_values),
        "stdout_bytes": run.stdout_bytes,
        "stderr_bytes": run.stderr_bytes,
    }


def _deployment(tx: Tx, call: Call) -> Deployment:
    return deployments.get(tx, call.path["deployment_id"], call.project)


def _accepted(deployment: Deployment) -> Reply:
    return Reply(202, {"software_deployment": shapes.deployment(deployment)})
