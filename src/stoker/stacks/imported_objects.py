"""
Objects that a stack brings from another Heat: configs, deployments and servers with their ids.

The objects exist before the stack's resources adopt them. They keep their ids, so that agents recognize the runs that
they have done, and do not repeat them.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

from stoker.deployments import service
from stoker.deployments.configs import new_config
from stoker.model.deployment import Deployment
from stoker.model.errors import Conflict, Invalid
from stoker.model.server import LONGEST_ID, Kind, Server
from stoker.model.status import Status
from stoker.resources.env import ResourceEnv
from stoker.store import configs, deployments, servers
from stoker.store.tx import Tx

CONFIGS, DEPLOYMENTS, SERVERS = "software_configs", "software_deployments", "servers"
#: The input of a derived config that names the transport of results.
_TRANSPORT = "deploy_signal_transport"
_ID = re.compile(r"[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}")


@dataclass(frozen=True, slots=True)
class ImportedObjects:
    """The objects as the sections of the import describe them, in the form of Heat's answers."""

    configs: Sequence[Mapping[str, Any]] = ()
    deployments: Sequence[Mapping[str, Any]] = ()
    servers: Sequence[Mapping[str, Any]] = ()


def read_imported_objects(data: Mapping[str, Any]) -> ImportedObjects:
    """Return the objects in adoption data. Raises Invalid if a section is malformed."""
    imported = ImportedObjects(*(_section(data, name) for name in (CONFIGS, DEPLOYMENTS, SERVERS)))
    for deployment in imported.deployments:
        _check_deployment(deployment)
    for server in imported.servers:
        if not isinstance(server.get("name"), str) or not server["name"]:
            raise Invalid(f"adopt_stack_data: the server {server['id']} needs a name")
    return imported


def add_objects(tx: Tx, env: ResourceEnv, imported: ImportedObjects, *, project_id: str, requested_by: str) -> None:
    """
    Create the objects without a stack.

    Raises Conflict if an id exists already, DeploymentRefused if the policy of a server denies a deployment, and
    Invalid.
    """
    for server in imported.servers:
        _add_server(tx, server, project_id)
    for config in imported.configs:
        if configs.find(tx, config["id"]) is not None:
            raise Conflict(f"the software config ({config['id']}) exists already")
        fields = ("name", "group", "config", "inputs", "outputs", "options")
        new_config(tx, project_id, id=config["id"], may_be_owned=True, **{name: config.get(name) for name in fields})
    for deployment in imported.deployments:
        _add_deployment(tx, env, deployment, project_id, requested_by)


def _section(data: Mapping[str, Any], name: str) -> Sequence[Mapping[str, Any]]:
    entries = data.get(name) or []
    if not isinstance(entries, list) or not all(isinstance(entry, Mapping) for entry in entries):
        raise Invalid(f"adopt_stack_data: {name} must be a list of maps")
    for entry in entries:
        if not isinstance(entry.get("id"), str) or not _ID.fullmatch(entry["id"]):
            raise Invalid(f"adopt_stack_data: each of {name} needs an id that is a UUID")
    return entries


def _check_deployment(deployment: Mapping[str, Any]) -> None:
    named = f"adopt_stack_data: the deployment {deployment['id']}"
    if deployment.get("status") not in (Status.COMPLETE, Status.FAILED):
        raise Invalid(f"{named} is {deployment.get('status')}: wait until it is COMPLETE or FAILED")
    for name in ("config_id", "server_id"):
        if not isinstance(deployment.get(name), str) or len(deployment[name]) > LONGEST_ID:
            raise Invalid(f"{named} needs a {name} that is an id")
    for name in ("input_values", "output_values"):
        if not isinstance(deployment.get(name) or {}, Mapping):
            raise Invalid(f"{named}: {name} must be a map")
    for name in ("action", "status_reason"):
        if not isinstance(deployment.get(name), str | None):
            raise Invalid(f"{named}: {name} must be text")


def _add_server(tx: Tx, server: Mapping[str, Any], project_id: str) -> None:
    if servers.find(tx, server["id"]) is not None:
        raise Conflict(f"the server ({server['id']}) exists already")
    servers.add(
        tx,
        Server(
            id=server["id"], project_id=project_id, name=server["name"][:255], kind=Kind.DEPLOYED, created_at=tx.now
        ),
    )


def _add_deployment(
    tx: Tx, env: ResourceEnv, deployment: Mapping[str, Any], project_id: str, requested_by: str
) -> None:
    if deployments.find(tx, deployment["id"]) is not None:
        raise Conflict(f"the deployment ({deployment['id']}) exists already")
    config = configs.find(tx, deployment["config_id"])
    if config is None or config.project_id != project_id:
        raise Invalid(
            f"adopt_stack_data: the config {deployment['config_id']} of the deployment {deployment['id']} is missing"
        )
    transports = [entry.get("value") for entry in config.inputs if entry["name"] == _TRANSPORT]
    new = Deployment(
        id=deployment["id"],
        project_id=project_id,
        server_id=deployment["server_id"],
        config_id=config.id,
        action=deployment.get("action"),
        status=deployment["status"],
        status_reason=deployment.get("status_reason"),
        input_values=deployment.get("input_values") or {},
        output_values=deployment.get("output_values") or {},
        created_at=tx.now,
        signal_transport=transports[0] if transports and transports[0] in env.transports.signal_transports else None,
    )
    service.create(tx, env, replace(new, updated_at=tx.now), requested_by)
