"""Configs and deployments in the form of Heat's API."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from stoker.deployments.derive import redact_config
from stoker.model.deployment import Deployment
from stoker.store import configs, rows
from stoker.store.tx import Tx


def config(tx: Tx, id: str, project_id: str) -> dict[str, Any]:
    """Return a project's config without the values of secret inputs. Raises EntityNotFound."""
    return redact_config(tx, rows.load(configs.body(tx, id, project_id)))


def deployment(tx: Tx, deployment: Deployment, names: Mapping[str, str | None] | None = None) -> dict[str, Any]:
    """Return a deployment without secrets; with ``names`` (``store.audit.names_of``), also these and the requester."""
    shown: dict[str, Any] = {
        "id": deployment.id,
        "server_id": deployment.server_id,
        "config_id": deployment.config_id,
        "input_values": tx.secrets.redact(dict(deployment.input_values)),
        "output_values": tx.secrets.redact(dict(deployment.output_values)),
        "action": deployment.action,
        "status": deployment.status,
        "status_reason": deployment.status_reason,
        "changed": deployment.changed,
        "changed_items": deployment.changed_items,
        "creation_time": rows.heat_time(deployment.created_at),
    }
    if deployment.updated_at is not None:
        shown["updated_time"] = rows.heat_time(deployment.updated_at)
    if names is not None:
        shown |= {**names, "requested_by": deployment.requested_by}
    return shown
