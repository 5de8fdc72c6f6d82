"""Deployments without a stack or a trigger."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from stoker.deployments import service
from stoker.model.deployment import Deployment
from stoker.policy.authorizer import DeploymentAuthorizer
from stoker.store.open import Store
from support.work import ManualWork


def begin(
    store: Store, name: str, *, awaits: bool = True, server: str = "s", inputs: Sequence[Mapping[str, Any]] = ()
) -> Deployment:
    """Start a deployment in a transaction of its own. Its id is ``{server}-{name}``."""
    run = service.Run(
        action="CREATE",
        name=name,
        group="script",
        config="#!/bin/sh",
        inputs=tuple(inputs),
        outputs=({"name": "result"},),
        options={},
        input_values={},
        signal_transport="STOKER_SIGNAL" if awaits else "NO_SIGNAL",
        awaits_signal=awaits,
    )
    return store.write(
        lambda tx: service.begin(
            tx,
            run,
            authorizer=DeploymentAuthorizer(ManualWork()),
            project_id="p",
            server_id=server,
            deployment_id=f"{server}-{name}",
        )
    )
