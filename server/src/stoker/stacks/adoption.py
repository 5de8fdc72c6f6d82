"""
Adoption: a stack takes over what another stack abandoned, or what it brings from another Heat.

All problems of the adopted objects are found before the stack exists; those of a cloud's objects by its provider. A
resource has no data of the adopted object until its type has agreed: the client may name objects of other projects, and
a resource's data is shown and deleted with it. Configs, deployments and servers from another Heat exist before the
stack's resources adopt them. They keep their ids, so that agents recognize the runs that they have done, and do not
repeat them.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Annotated, Any, Literal

from msgspec import Meta, Struct
from msgspec.structs import asdict

from stoker import json_values
from stoker.deployments import run_end, service
from stoker.deployments.configs import new_config
from stoker.json_values import NO_NUL, RequiredName
from stoker.model.deployment import Deployment
from stoker.model.errors import Conflict, Invalid
from stoker.model.ids import is_id
from stoker.model.server import LONGEST_ID, Kind, Server
from stoker.model.stack import Resource, Status
from stoker.resources.base import ResourceEnv
from stoker.stacks.engine.decisions import TAKES
from stoker.stacks.engine.session import new_resource
from stoker.stacks.templates.prepare import ResolvedStack
from stoker.store import configs, deployments, resources, servers
from stoker.store.tx import Tx

#: The input of a derived config that names the transport of results.
_TRANSPORT = "deploy_signal_transport"
_Text = Annotated[str, Meta(pattern=NO_NUL)]
_OtherId = Annotated[str, Meta(max_length=LONGEST_ID, pattern=NO_NUL)]


class _Imported(Struct, frozen=True, kw_only=True):
    """An object that keeps its id, in the form of Heat's answers."""

    id: str

    def __post_init__(self) -> None:
        if not is_id(self.id):
            raise ValueError("its id must be a UUID")


class ImportedServer(_Imported, frozen=True, kw_only=True):
    """A server from another Heat."""

    name: RequiredName


class ImportedConfig(_Imported, frozen=True, kw_only=True):
    """A config from another Heat. ``configs.new_config`` checks its members."""

    name: Any = None
    group: Any = None
    config: Any = None
    inputs: Any = None
    outputs: Any = None
    options: Any = None


class ImportedDeployment(_Imported, frozen=True, kw_only=True):
    """A deployment from another Heat whose run has ended."""

    config_id: _OtherId
    server_id: _OtherId
    action: _Text | None = None
    status: Literal["COMPLETE", "FAILED"]
    status_reason: _Text | None = None
    input_values: dict[str, Any] | None = None
    output_values: dict[str, Any] | None = None


class Adoption(Struct, frozen=True, kw_only=True):
    """What a new stack takes over, in the form of abandon data, and the objects of another Heat to create before."""

    resources: dict[str, Any]
    software_configs: tuple[ImportedConfig, ...] | None = None
    software_deployments: tuple[ImportedDeployment, ...] | None = None
    servers: tuple[ImportedServer, ...] | None = None

    @classmethod
    def read(cls, data: Any) -> Adoption:
        """Return the adoption that a request describes. Raises Invalid if the data is malformed."""
        read_adoption_data(data)
        try:
            return json_values.convert(data, cls, "it")
        except Invalid as error:
            raise Invalid(f"adopt_stack_data: {error.message}") from None


def add_objects(tx: Tx, env: ResourceEnv, adoption: Adoption, *, project_id: str, requested_by: str) -> None:
    """
    Create the objects without a stack. Those that an incomplete adoption has left are used again.

    Raises Conflict if an id exists otherwise, DeploymentRefused, Invalid.
    """
    for deployment in adoption.software_deployments or ():
        _withdraw_left(tx, env, deployment.id, project_id)
    for server in adoption.servers or ():
        left = servers.find(tx, server.id)
        if left is None:
            new = Server(id=server.id, project_id=project_id, name=server.name, kind=Kind.DEPLOYED, created_at=tx.now)
            servers.add(tx, new)
        elif left.project_id != project_id or left.stack_id is not None or left.kind is not Kind.DEPLOYED:
            raise Conflict(f"the server ({server.id}) exists already")
    for config in adoption.software_configs or ():
        present = configs.find(tx, config.id)
        if present is None:
            new_config(tx, project_id, may_be_owned=True, **asdict(config))
        elif present.project_id != project_id or resources.all_with_physical_id(tx, config.id, project_id):
            raise Conflict(f"the software config ({config.id}) exists already")
    for deployment in adoption.software_deployments or ():
        _add_deployment(tx, env, deployment, project_id, requested_by)


def _withdraw_left(tx: Tx, env: ResourceEnv, id: str, project_id: str) -> None:
    """Delete a deployment that an incomplete adoption has left. Raises Conflict for any other with this id."""
    left = deployments.find(tx, id, for_update=True)
    if left is None:
        return
    # A run that a client has started since is one more.
    is_unused = left.is_of_client and left.has_ended and left.run_number == 1
    if left.project_id != project_id or not is_unused:
        raise Conflict(f"the deployment ({id}) exists already")
    run_end.withdraw(tx, env, left)


def _add_deployment(
    tx: Tx, env: ResourceEnv, deployment: ImportedDeployment, project_id: str, requested_by: str
) -> None:
    config = configs.find(tx, deployment.config_id)
    if config is None or config.project_id != project_id:
        raise Invalid(
            f"adopt_stack_data: the config {deployment.config_id} of the deployment {deployment.id} is missing"
        )
    transports = [entry.get("value") for entry in config.inputs if entry["name"] == _TRANSPORT]
    new = Deployment(
        id=deployment.id,
        project_id=project_id,
        server_id=deployment.server_id,
        config_id=config.id,
        action=deployment.action,
        status=Status(deployment.status),
        status_reason=deployment.status_reason,
        input_values=deployment.input_values or {},
        output_values=deployment.output_values or {},
        created_at=tx.now,
        updated_at=tx.now,
        signal_transport=transports[0] if transports and transports[0] in env.transports.signal_transports else None,
    )
    service.run_config(tx, env, new, config, requested_by)


def read_adoption_data(data: Any) -> Mapping[str, Any]:
    """Return the resources of abandon data. Raises Invalid if the data is malformed."""
    resources = data.get("resources") if isinstance(data, Mapping) else None
    if not isinstance(resources, Mapping) or not all(isinstance(resource, Mapping) for resource in resources.values()):
        raise Invalid('adopt_stack_data must be what abandon gave: a map with "template" and "resources"')
    for name, resource in resources.items():
        _check_resource(name, resource)
    return resources


def _check_resource(name: str, resource: Mapping[str, Any]) -> None:
    data = resource.get("resource_data") or {}
    if not isinstance(resource.get("resource_id"), str | None) or not isinstance(data, Mapping):
        raise Invalid(f"adopt_stack_data: resources.{name} needs a resource_id that is text, and resource_data a map")
    if not isinstance(resource.get("metadata") or {}, Mapping):
        raise Invalid(f"adopt_stack_data: resources.{name}.metadata must be a map")


def placeholders(tx: Tx, stack_id: str, resolved: ResolvedStack, adopted: Mapping[str, Any]) -> list[Resource]:
    """Return placeholder rows for resources of a new stack that take over existing objects."""
    new = []
    for name, abandoned in adopted.items():
        definition = resolved.definitions.get(name)
        if definition is None or not abandoned.get("resource_id"):
            continue
        # Only "resources" was checked, so a client's own "adopt" is dropped.
        data = {key: value for key, value in (abandoned.get("resource_data") or {}).items() if key != "adopt"}
        metadata = abandoned.get("metadata") or {}
        if "resources" in abandoned:
            data["adopt"] = read_adoption_data(abandoned)
        takes = {"physical_id": abandoned["resource_id"], "data": data, "metadata": metadata}
        new.append(new_resource(tx, stack_id, name, definition["type"], {TAKES: takes}))
    return new
