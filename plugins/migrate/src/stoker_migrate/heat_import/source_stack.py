"""Reads a stack of another Heat with everything that belongs to it, with GET requests only, and waits for it."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, TypeVar

from stoker_client.collection import part, segment
from stoker_client.errors import NotFound, TimedOut
from stoker_client.updates import attempts

if TYPE_CHECKING:
    from stoker_client.wire import Wire

T = TypeVar("T")
#: Seconds until no answer is expected any more.
_LIMIT = 3600.0


def poll(ask: Callable[[], T | None], limit: float = _LIMIT) -> T:
    """Call ``ask`` until it returns a value, for at most ``limit`` seconds. Raises TimedOut."""
    for _ in attempts(time.monotonic() + limit):
        if (value := ask()) is not None:
            return value
    raise TimedOut(f"no result after {limit:.0f} seconds")


#: Types whose physical objects are configs, or deployments.
CONFIG_TYPES = (
    "OS::Heat::SoftwareConfig",
    "OS::Heat::StructuredConfig",
    "OS::Heat::SoftwareComponent",
    "OS::Heat::CloudConfig",
    "OS::Heat::MultipartMime",
)
DEPLOYMENT_TYPES = ("OS::Heat::SoftwareDeployment", "OS::Heat::StructuredDeployment")
#: Types whose metadata has the signals that arrived.
_HANDLES = ("OS::Heat::WaitConditionHandle", "AWS::CloudFormation::WaitConditionHandle")
SERVER = "OS::Heat::DeployedServer"
SERVER_TYPES = (SERVER, "OS::Nova::Server", "AWS::EC2::Instance")
#: Types whose attributes are their data.
_WITH_DATA = ("OS::Heat::RandomString", *SERVER_TYPES)


@dataclass(frozen=True)
class SourceResource:
    """A resource of the stack, and the resources of the nested stack that it represents."""

    name: str
    type: str
    physical_id: str
    status: str
    attributes: Mapping[str, Any]
    metadata: Mapping[str, Any]
    #: None if the resource represents no nested stack.
    members: tuple[SourceResource, ...] | None
    #: Paths of the resource, and of the nested stack, below the project's endpoint; empty without a nested stack.
    path: str
    nested: str = ""


@dataclass(frozen=True)
class SourceStack:
    """A stack of another Heat, in the form of the API's answers."""

    stack: Mapping[str, Any]
    template: Mapping[str, Any]
    environment: Mapping[str, Any]
    files: Mapping[str, str]
    resources: tuple[SourceResource, ...]
    configs: tuple[Mapping[str, Any], ...]
    deployments: tuple[Mapping[str, Any], ...]
    #: Why the stack cannot be imported at present, one sentence for each reason.
    problems: tuple[str, ...] = ()

    @property
    def path(self) -> str:
        """The path of the stack below the project's endpoint."""
        return f"/stacks/{segment(self.stack['stack_name'])}/{segment(self.stack['id'])}"


def walk(resources: Iterable[SourceResource], above: str = "") -> Iterator[tuple[str, SourceResource]]:
    """Yield resources and those of their nested stacks, each with its path, such as ``group/0``."""
    for resource in resources:
        path = above + resource.name
        yield path, resource
        yield from walk(resource.members or (), f"{path}/")


def object_ids(resources: Iterable[SourceResource]) -> dict[str, str]:
    """Return the physical ids by path, without those of nested stacks, which an import does not keep."""
    return {path: item.physical_id for path, item in walk(resources) if item.physical_id and item.members is None}


def read_stack(wire: Wire, ref: str) -> SourceStack:
    """Read the stack called ``ref``, a name or an id. Raises NotFound, also for a deleted stack."""
    stack = part(wire.get(f"/stacks/{segment(ref)}"), "stack")
    if stack["stack_status"] == "DELETE_COMPLETE":  # Heat shows deleted stacks for some time
        raise NotFound(f"the stack {stack['stack_name']} is deleted there", 404)
    path = f"/stacks/{segment(stack['stack_name'])}/{segment(stack['id'])}"
    resources = read_resources(wire, path)
    everything = [resource for _, resource in walk(resources)]
    deployments = [_read_deployment(wire, resource) for resource in everything if resource.type in DEPLOYMENT_TYPES]
    present = tuple(deployment for deployment in deployments if deployment is not None)
    ids = [resource.physical_id for resource in everything if resource.type in CONFIG_TYPES and resource.physical_id]
    ids += [deployment["config_id"] for deployment in present]
    return SourceStack(
        stack=stack,
        template=wire.get(f"{path}/template"),
        environment=wire.get(f"{path}/environment") or {},
        files=wire.get(f"{path}/files") or {},
        resources=resources,
        configs=tuple(_read_config(wire, id_) for id_ in dict.fromkeys(ids)),
        deployments=present,
        problems=(*_stack_problems(stack), *_deployment_problems(everything, present)),
    )


def _stack_problems(stack: Mapping[str, Any]) -> list[str]:
    status = stack["stack_status"]
    if status.endswith("_COMPLETE") and not status.startswith("DELETE"):
        return []
    return [f"the stack {stack['stack_name']} is {status} there: only a complete stack can be imported"]


def _deployment_problems(resources: list[SourceResource], deployments: tuple[Mapping[str, Any], ...]) -> list[str]:
    names = {resource.physical_id: resource.name for resource in resources}
    return [
        f"the deployment {names[item['id']]} ({item['id']}) is {item['status']} there: wait until it ends"
        for item in deployments
        if item["status"] not in ("COMPLETE", "FAILED")
    ]


def read_resources(wire: Wire, path: str) -> tuple[SourceResource, ...]:
    """Read the resources of the stack at ``path`` with those of its nested stacks, here or at another Heat."""
    listed = part(wire.get(f"{path}/resources"), "resources")
    return tuple(_read_resource(wire, path, entry) for entry in listed)


def _read_resource(wire: Wire, path: str, entry: Mapping[str, Any]) -> SourceResource:
    own = f"{path}/resources/{segment(entry['resource_name'])}"
    type_name = entry["resource_type"]
    nested = [link["href"] for link in entry.get("links", ()) if link.get("rel") == "nested"]
    metadata: Mapping[str, Any] = {}
    attributes: Mapping[str, Any] = {}
    if type_name in _HANDLES:
        metadata = part(wire.get(f"{own}/metadata"), "metadata")
    if type_name in _WITH_DATA:
        attributes = part(wire.get(own), "resource").get("attributes") or {}
    return SourceResource(
        name=entry["resource_name"],
        type=type_name,
        physical_id=entry.get("physical_resource_id") or "",
        status=entry["resource_status"],
        attributes=attributes,
        metadata=metadata,
        members=read_resources(wire, _path_of(nested[0])) if nested else None,
        path=own,
        nested=_path_of(nested[0]) if nested else "",
    )


def _path_of(href: str) -> str:
    """Return the path of a stack below the project's endpoint."""
    return "/stacks/" + href.partition("/stacks/")[2]


def _read_deployment(wire: Wire, resource: SourceResource) -> Mapping[str, Any] | None:
    """Return the deployment; None if the stack's actions never started one."""
    if not resource.physical_id:
        return None
    try:
        deployment = part(wire.get(f"/software_deployments/{segment(resource.physical_id)}"), "software_deployment")
    except NotFound:
        return None
    return dict(deployment)


def _read_config(wire: Wire, id_: str) -> Mapping[str, Any]:
    return dict(part(wire.get(f"/software_configs/{segment(id_)}"), "software_config"))
