"""Deployments without anything around them."""

from __future__ import annotations

from stoker.deployments import manage
from stoker.deployments.gate import Gate
from stoker.model.deployment import Deployment
from stoker.store.open import Store
from support.work import HeldWork


def begin(store: Store, name: str, *, awaits: bool = True, server: str = "s") -> Deployment:
    run = manage.Run(
        action="CREATE",
        name=name,
        group="script",
        config="#!/bin/sh",
        inputs=(),
        outputs=({"name": "result"},),
        options={},
        input_values={},
        signal_transport="STOKER_SIGNAL" if awaits else "NO_SIGNAL",
        awaits_signal=awaits,
    )
    return store.write(
        lambda tx: manage.begin(
            tx, run, gate=Gate(HeldWork()), project_id="p", server_id=server, deployment_id=f"{server}-{name}"
        )
    )
