"""
Owners of deployments: a stack's resource, a trigger, or the client that created the deployment.

The owner determines how results of a run return: a resource names its transport and has a target of its own. A
deployment without a resource uses its own id where others use the id of their resource: in names of queues and objects,
for its stack user and in its signal URL.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from typing import Any

from stoker.deployments.derive import DEPLOY_PREFIX
from stoker.identity.stack_users import SignalTokens
from stoker.model.deployment import Deployment
from stoker.model.errors import Conflict, EntityNotFound, Invalid
from stoker.policy.authorizer import DeploymentAuthorizer, audit_refused_writes
from stoker.store import deployments, servers, stacks, triggers
from stoker.store.tx import Tx
from stoker.transports import AUTO, Transports
from stoker.transports.base import Platform, SignalTransport, TransportTarget, needs_provisioning
from stoker.work import Work


@dataclass(frozen=True, slots=True, kw_only=True)
class DeploymentEnv:
    """The services of one process that runs need. ``resources.env.ResourceEnv`` adds those of other resources."""

    #: The transports of this process.
    transports: Transports
    work: Work
    platform: Platform
    signal_tokens: SignalTokens
    #: Every run of a deployment passes the authorizer.
    authorizer: DeploymentAuthorizer

    def post_events(self, tx: Tx, project_id: str, queue: str, payload: Sequence[Any], ttl: int) -> None:
        """Post events to a sink, unless it is the queue of a server or a deployment: the audit log then says so."""
        if self.platform.messaging is not None:
            with suppress(Conflict), audit_refused_writes(tx, "event_sinks"):
                self.platform.messaging.post(tx, project_id, queue, payload, ttl=ttl)


#: Transports whose results arrive at the deployment's own URL: upstream agents post there without a resource.
_BY_URL = ("CFN_SIGNAL", "HEAT_SIGNAL")
#: Inputs that transports may add; each transport adds some of them.
_SIGNAL_INPUTS = tuple(
    DEPLOY_PREFIX + name
    for name in (
        *("signal_id", "signal_verb", "queue_id"),
        *("auth_url", "username", "user_id", "password", "project_id", "region_name"),
    )
)


def client_target(deployment_id: str, project_id: str, name: str | None = None, run: int = 0) -> TransportTarget:
    """Return the remote end for the result of a run without a resource, by the config's name and the run's number."""
    return TransportTarget(
        resource_id=deployment_id,
        resource_name=deployment_id,
        name=name or deployment_id,
        stack_id=deployment_id,
        stack_name="deployment",
        project_id=project_id,
        run=str(run) if run else "",
    )


def client_transport(tx: Tx, env: DeploymentEnv, name: str | None, server_id: str) -> SignalTransport:
    """
    Return the signal transport ``name`` for a deployment without a resource; None and AUTO: one that suits the server.
    Raises Invalid if there is none, or if it requires a resource.
    """
    transports = env.transports
    if name is None or name == AUTO:
        # an upstream agent can post to a URL in any case
        server = servers.find(tx, server_id)
        name = "STOKER_SIGNAL" if server is not None and server.has_channel else "CFN_SIGNAL"
    if name not in transports.signal_names:
        raise Invalid(f"signal_transport {name!r:.100} is none of {', '.join(transports.signal_names)}")
    transport = transports.signal_transports[name]
    if getattr(transport, "logs_in", False) and name not in _BY_URL and not env.platform.keeps_users:
        raise Invalid(f"{name} needs a user at Keystone, which only resources of stacks get: use CFN_SIGNAL")
    return transport


def client_signal_inputs(
    tx: Tx, env: DeploymentEnv, transport: SignalTransport, target: TransportTarget
) -> Mapping[str, Any]:
    """Return the ``deploy_*`` inputs that tell the agent where to send the result of a run without a resource."""
    if transport.signal_name not in _BY_URL:
        return transport.signal_inputs(tx, env.platform, target)
    url = signal_url(env, target.project_id, target.resource_id, int(target.run))
    return {f"{DEPLOY_PREFIX}signal_id": url, f"{DEPLOY_PREFIX}signal_verb": "POST"}


def possible_inputs(transport: SignalTransport) -> Mapping[str, Any]:
    """Return the names that ``client_signal_inputs`` may return, with empty values."""
    has_inputs = transport.signal_name in _BY_URL or needs_provisioning(transport)
    return dict.fromkeys(_SIGNAL_INPUTS if has_inputs else (), "")


def signal_url(env: DeploymentEnv, project_id: str, deployment_id: str, run: int) -> str:
    """Return the signal URL of one run. The URL authorizes its holder to signal only this run of this deployment."""
    token = env.signal_tokens.token(deployment_id)
    return (
        f"{env.platform.public_url}/v1/{project_id}/software_deployments/{deployment_id}/signal?token={token}&run={run}"
    )


def lock(tx: Tx, deployment: Deployment) -> Deployment:
    """Lock stack, trigger and deployment, in this order. Return the deployment. Raises EntityNotFound."""
    if deployment.stack_id is not None:
        stacks.lock(tx, deployment.stack_id)
    if deployment.trigger_id is not None:
        triggers.find(tx, deployment.trigger_id, for_update=True)
    return deployments.get(tx, deployment.id, for_update=True)


def find_locked(tx: Tx, id: str) -> Deployment | None:
    """Return the deployment, locked as by ``lock``, or None if it was deleted."""
    unlocked = deployments.find(tx, id)
    try:
        return lock(tx, unlocked) if unlocked else None
    except EntityNotFound:
        return None
