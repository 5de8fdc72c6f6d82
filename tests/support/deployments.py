"""Deployments without a stack or a trigger."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, cast

from stoker import transports
from stoker.deployments import run_end, service
from stoker.deployments.documents import LOG_BYTES
from stoker.deployments.owners import DeploymentEnv
from stoker.deployments.run_plan import RunRequest
from stoker.identity.stack_users import SignalTokens
from stoker.model.config import Content
from stoker.model.deployment import OWN_CHANNEL, Deployment
from stoker.policy.authorizer import DeploymentAuthorizer
from stoker.store import deployments
from stoker.store.open import Store
from stoker.store.tx import Tx
from support.work import ManualWork

#: The services of deployments, for transports that need no platform.
ENV = DeploymentEnv(
    work=ManualWork(),
    transports=transports.load(),
    platform=cast(Any, None),
    signal_tokens=SignalTokens(b"secret"),
    authorizer=DeploymentAuthorizer(ManualWork()),
)


def begin(
    store: Store,
    name: str,
    *,
    awaits: bool = True,
    server: str = "s",
    project: str = "p",
    group: str = "script",
    action: str = "CREATE",
    requested_by: str | None = None,
    env: DeploymentEnv = ENV,
    inputs: Sequence[Mapping[str, Any]] = (),
    options: Mapping[str, Any] | None = None,
) -> Deployment:
    """Start a deployment in a transaction of its own. Its id is ``{server}-{name}``."""
    request = RunRequest(
        content=Content(
            name=name,
            group=group,
            config="#!/bin/sh",
            inputs=tuple({key: value for key, value in entry.items() if key != "value"} for entry in inputs),
            outputs=({"name": "result"},),
            options=options or {},
            facts={},
        ),
        action=action,
        name=name,
        project_id=project,
        server_id=server,
        input_values={entry["name"]: entry["value"] for entry in inputs},
        signal_transport="STOKER_SIGNAL" if awaits else "NO_SIGNAL",
        requested_by=requested_by,
    )
    return store.write(lambda tx: service.start_run(tx, env, request, deployment_id=f"{server}-{name}"))


def signal(store: Store, deployment: Deployment, **values: Any) -> Deployment:
    """Apply values that an agent reports of a deployment's run."""
    return store.write(
        lambda tx: run_end.apply_signal(tx, ENV.work, deployments.get(tx, deployment.id), values, LOG_BYTES)
    )


def deliver(store: Store, deployment: Deployment, channel: str = OWN_CHANNEL, *, received: bool = True) -> Deployment:
    """Record that the run was sent by a channel, and received. Return the deployment."""

    def do(tx: Tx) -> Deployment:
        delivery = deployments.Delivery(deployment.id, deployment.config_id, channel, tx.now, received=received)
        deployments.record_deliveries(tx, [delivery])
        return deployments.get(tx, deployment.id)

    return store.write(do)


def run_of(store: Store, deployment: Deployment) -> Any:
    """Return the last run of a deployment."""
    with store.read() as tx:
        return deployments.get(tx, deployment.id).run
