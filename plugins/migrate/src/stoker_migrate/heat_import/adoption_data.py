"""Describes a stack of another Heat for Stoker to adopt, and recognizes a stack that an earlier import has created."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

from stoker_client.errors import BadInput, NotFound
from stoker_client.templates.bundle import merge
from stoker_migrate.heat_import.source_stack import (
    CONFIG_TYPES,
    DEPLOYMENT_TYPES,
    SERVER,
    SERVER_TYPES,
    SourceResource,
    SourceStack,
    object_ids,
    read_resources,
    walk,
)

if TYPE_CHECKING:
    from stoker_client.client import Client
    from stoker_client.shapes import Stack

#: What Heat shows in place of the value of a hidden parameter.
_HIDDEN = "******"
_SECTIONS = ("parameters", "parameter_defaults", "resource_registry", "parameter_merge_strategies")
_CONFIG = ("id", "name", "group", "config", "inputs", "outputs", "options")
_DEPLOYMENT = (
    "id",
    "config_id",
    "server_id",
    "action",
    "status",
    "status_reason",
    "input_values",
    "output_values",
)


def adoption_data(
    source: SourceStack,
    parameters: Mapping[str, Any],
    replaced: Mapping[str, Any],
    refusals: Sequence[str] = (),
) -> dict[str, Any]:
    """
    Return the ``adopt_stack_data`` of a create request.

    ``parameters``: values that replace those of the stack. ``replaced``: a template with its files and environment that
    takes the place of the stack's, in the form of a create request. ``refusals``: other reasons against the import.
    Raises BadInput with all reasons why the stack cannot be imported, such as a hidden parameter without a value.
    """
    template = replaced.get("template") or source.template
    environment = {name: source.environment[name] for name in _SECTIONS if source.environment.get(name)}
    environment = merge(environment, replaced.get("environment") or {})
    environment["parameters"] = {**environment.get("parameters", {}), **parameters}
    if replaced.get("template"):
        environment["parameters"] = _declared(environment["parameters"], replaced)
    refuse([*source.problems, *refusals, *_hidden(source, environment["parameters"])])
    return {
        "name": source.stack["stack_name"],
        "id": source.stack["id"],
        "template": template,
        "environment": environment,
        "files": {**source.files, **(replaced.get("files") or {})},
        "tags": source.stack.get("tags") or [],
        "resources": {resource.name: _resource(resource) for resource in source.resources},
        "software_configs": [_pick(config, _CONFIG) for config in source.configs],
        "software_deployments": [_pick(deployment, _DEPLOYMENT) for deployment in source.deployments],
        "servers": list(_servers(source).values()),
    }


def _resource(resource: SourceResource) -> dict[str, Any]:
    action, _, status = resource.status.partition("_")
    described: dict[str, Any] = {
        "name": resource.name,
        "type": resource.type,
        "resource_id": resource.physical_id or _stand_in(resource),
        "action": action,
        "status": status,
        "metadata": dict(resource.metadata),
        "resource_data": {},
    }
    if resource.type == "OS::Heat::RandomString":
        described["resource_data"] = {"value": resource.attributes.get("value")}
    if resource.members is not None:
        described["resources"] = {member.name: _resource(member) for member in resource.members}
    return described


def _stand_in(resource: SourceResource) -> str | None:
    """Return an id for a complete resource without an object, such as a wait condition, which must not wait again."""
    has_object = resource.type in (*CONFIG_TYPES, *DEPLOYMENT_TYPES, *SERVER_TYPES)
    return None if has_object or not resource.status.endswith("_COMPLETE") else resource.name


def _servers(source: SourceStack) -> dict[str, dict[str, str]]:
    """Return the servers by id: the deployed ones, and others that deployments run on."""
    named = {resource.physical_id: resource for _, resource in walk(source.resources) if resource.type in SERVER_TYPES}
    targets = {deployment["server_id"] for deployment in source.deployments}
    return {
        id_: {"id": id_, "name": str(resource.attributes.get("name") or resource.name)}
        for id_, resource in named.items()
        if id_ and (resource.type == SERVER or id_ in targets)
    }


def refuse(problems: Sequence[str]) -> None:
    """Raise BadInput with all problems if there are any."""
    if problems:
        raise BadInput(problems[0] if len(problems) == 1 else "\n".join(["the stack cannot be imported:", *problems]))


def _hidden(source: SourceStack, parameters: Mapping[str, Any]) -> list[str]:
    names = sorted(name for name, value in parameters.items() if value == _HIDDEN)
    options = " ".join(f"-P {name}=…" for name in names)
    text = f"Heat does not show hidden parameters of {source.stack['stack_name']}: add {options}"
    return [text] if names else []


def _declared(parameters: Mapping[str, Any], replaced: Mapping[str, Any]) -> dict[str, Any]:
    """Return the parameters that the other template has. Its text is only searched for their names."""
    text = str(replaced["template"])
    return {name: value for name, value in parameters.items() if name in text}


def _pick(answer: Mapping[str, Any], names: tuple[str, ...]) -> dict[str, Any]:
    return {name: answer.get(name) for name in names}


def find_import(client: Client, name: str, source: SourceStack) -> str | None:
    """Return the ``name/id`` of the stack ``name`` if it has the same objects as ``source``, else None."""
    try:
        stack = client.stacks.show(name, outputs=False)
    except NotFound:
        return None
    ref = f"{stack['stack_name']}/{stack['id']}"
    ours, theirs = object_ids(read_resources(client.wire, f"/stacks/{ref}")), object_ids(source.resources)
    common = theirs.keys() & ours.keys()
    # Heat gives associations of floating IPs numbers, which Stoker does not keep.
    is_import = common and all(theirs[path] == ours[path] or theirs[path].isdecimal() for path in common)
    return ref if is_import else None


def find_finished(client: Client, name: str) -> Stack | None:
    """Return the stack ``name`` if it has been adopted, else None."""
    try:
        stack = client.stacks.show(name)
    except NotFound:
        return None
    return stack if stack["stack_status"] == "ADOPT_COMPLETE" else None
