"""Posts drift of a deployment to the event sinks that the options of its config name."""

from __future__ import annotations

from contextlib import suppress
from typing import Any
from uuid import uuid4

from stoker.deployments.env import DeploymentEnv
from stoker.deployments.run_options import EVENT_SINKS
from stoker.hot.sinks import list_sinks
from stoker.model.check import Check, CheckState
from stoker.model.config import Config
from stoker.model.deployment import Deployment
from stoker.model.errors import Conflict
from stoker.store import configs, rows, servers, stacks
from stoker.store.tx import Tx

#: The number of differences that an event names.
_SHOWN_ITEMS = 5


def post_drift(tx: Tx, env: DeploymentEnv, deployment: Deployment, check: Check) -> None:
    """
    Post the begin or the end of drift to the sinks of the deployment's config.

    A queue that receives the events of the deployment's stack gets no second message.
    """
    config, messaging = configs.find(tx, deployment.config_id), env.platform.messaging
    sinks = list_sinks(config.options.get(EVENT_SINKS)) if config else ()
    if config is None or not sinks or messaging is None:
        return
    stack = stacks.find(tx, deployment.stack_id) if deployment.stack_id else None
    of_stack = {sink["target"] for sink in stack.event_sinks} if stack else set()
    message = _format_message(tx, deployment, config, check)
    for sink in sinks:
        if sink.queue not in of_stack:
            with suppress(Conflict):  # audited: an event must not enter a server's queue
                messaging.post(tx, deployment.project_id, sink.queue, [message], sink.ttl)


def describe_drift(check: Check) -> str:
    """Return what happened, with the names of the first differences."""
    if check.drifted_at is None:
        return "drift ended: the server is in sync"
    items = ", ".join(str(change.get("item") or "?") for change in check.changes[:_SHOWN_ITEMS])
    more = f" and {len(check.changes) - _SHOWN_ITEMS} more" if len(check.changes) > _SHOWN_ITEMS else ""
    return f"drift began: {items}{more}" if items else "drift began"


def _format_message(tx: Tx, deployment: Deployment, config: Config, check: Check) -> dict[str, Any]:
    server = servers.find(tx, deployment.server_id)
    is_own = server is not None and server.project_id == deployment.project_id
    return {
        "timestamp": rows.heat_time(tx.now),
        "version": "0.1",
        "type": "stoker.drift",
        "id": str(uuid4()),
        "payload": {
            "deployment_id": deployment.id,
            "name": config.name,
            "server_id": deployment.server_id,
            "server_name": server.name if server and is_own else None,
            "stack_id": deployment.stack_id,
            "state": CheckState.IN_SYNC if check.drifted_at is None else CheckState.DRIFTED,
            "reason": tx.secrets.redact_text(describe_drift(check)),
        },
    }
