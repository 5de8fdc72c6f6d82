"""Deployments without a stack or a trigger."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from stoker import transports
from stoker.deployments import run_end, service
from stoker.deployments.documents import LOG_BYTES
from stoker.deployments.run_plan import RunRequest
from stoker.identity.stack_users import SignalTokens
from stoker.model.config import Content
from stoker.model.deployment import Deployment
from stoker.policy.authorizer import DeploymentAuthorizer
from stoker.store import deployments
from stoker.store.open import Store
from stoker.transports import Transports
from support.work import ManualWork


@dataclass
class Env:
    """The services of deployments, for transports that need no platform."""

    work: ManualWork = field(default_factory=ManualWork)
    transports: Transports = field(default_factory=transports.load)
    platform: Any = None
    signal_tokens: SignalTokens = field(default_factory=lambda: SignalTokens(b"secret"))
    authorizer: DeploymentAuthorizer = field(default_factory=lambda: DeploymentAuthorizer(ManualWork()))


def begin(
    store: Store,
    name: str,
    *,
    awaits: bool = True,
    server: str = "s",
    inputs: Sequence[Mapping[str, Any]] = (),
    options: Mapping[str, Any] | None = None,
) -> Deployment:
    """Start a deployment in a transaction of its own. Its id is ``{server}-{name}``."""
    request = RunRequest(
        content=Content(
            name=name,
            group="script",
            config="#!/bin/sh",
            inputs=tuple({key: value for key, value in entry.items() if key != "value"} for entry in inputs),
            outputs=({"name": "result"},),
            options=options or {},
            facts={},
        ),
        action="CREATE",
        name=name,
        project_id="p",
        server_id=server,
        input_values={entry["name"]: entry["value"] for entry in inputs},
        signal_transport="STOKER_SIGNAL" if awaits else "NO_SIGNAL",
    )
    return store.write(lambda tx: service.start_run(tx, Env(), request, deployment_id=f"{server}-{name}"))


def signal(store: Store, deployment: Deployment, **values: Any) -> Deployment:
    """Apply values that an agent reports of a deployment's run."""
    work = ManualWork()
    return store.write(lambda tx: run_end.apply_signal(tx, work, deployments.get(tx, deployment.id), values, LOG_BYTES))


def run_of(store: Store, deployment: Deployment) -> Any:
    """Return the last run of a deployment."""
    with store.read() as tx:
        return deployments.get(tx, deployment.id).run
