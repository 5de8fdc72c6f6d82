"""Deployments and their groups: each runs a config, as text or with values put in place, on one or more servers."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from itertools import islice
from typing import Any

from stoker.hot import UNKNOWN, Definition, select
from stoker.model.stack import Resource
from stoker.resources.base import Context, Outcome, Properties
from stoker.resources.properties import Property, PropertyError
from stoker.resources.roles import Members, RunsConfig
from stoker.stacks.engine.session import LiveScope
from stoker.store import resources, server_lists, servers
from stoker.types import deployment_runs, label_groups, rollout
from stoker.types.deployment_base import PROPERTIES, DeploymentType
from stoker.types.group_base import GroupType
from stoker.types.rollout import CAREFUL, describe_clash

_WHICH: Mapping[str, Property] = {
    "servers": Property(
        kind="map", update_allowed=True, description="Ids of servers by names, which name the deployments."
    ),
    "labels": Property(
        kind="map",
        update_allowed=True,
        description="Instead of servers: it is of whatever servers have all these labels (Stoker's own).",
    ),
    "selector": Property(
        kind="string",
        update_allowed=True,
        description="Instead of servers: a condition over labels and facts (Stoker's own), docs/servers.md.",
    ),
}
#: The attribute that maps failed members to the reasons.
_FAILED = "failed_members"
#: Attribute names of the group and of its members.
_ALL = {
    "deploy_stdouts": "deploy_stdout",
    "deploy_stderrs": "deploy_stderr",
    "deploy_status_codes": "deploy_status_code",
}


def _may_share_servers(context: Context, resource: Resource, properties: Properties) -> bool:
    """Return whether a group with these properties may have a server of ``resource``. A selector finds any server."""
    if label_groups.selector_of(properties) is not None or label_groups.selector_of(resource.properties) is not None:
        return True
    ids = [
        {servers.resolve_id(context.tx, context.project_id, str(id)) for id in (group["servers"] or {}).values()}
        for group in (properties, resource.properties)
    ]
    return bool(ids[0] & ids[1])


def group_properties(one: type[DeploymentType]) -> Mapping[str, Property]:
    """Return the properties of a group of deployments of the type ``one``."""
    return {**_shared(one), **_WHICH}


def _shared(one: type[DeploymentType]) -> Mapping[str, Property]:
    return {key: schema for key, schema in one.properties.items() if key != "server"}


class DeploymentGroupType(RunsConfig, GroupType):
    """A group of deployments: of named servers, or of the servers that have the group's labels."""

    policies = rollout.schema(CAREFUL, CAREFUL)
    is_group = True
    #: The type of the members.
    one: type[DeploymentType]

    def servers(self, properties: Properties) -> Mapping[str, Any]:
        named = properties.get("servers")
        return {f"servers.{name}": id for name, id in named.items()} if isinstance(named, Mapping) else {}

    def definitions(self, resource: Resource, properties: Properties) -> Members:
        return self._define(label_groups.members(resource, properties), properties)

    def members(self, properties: Properties, *, every: bool = False) -> Members:
        servers = properties["servers"]
        if servers is UNKNOWN:
            return {}
        named = {"any": UNKNOWN} if servers is None else servers
        return self._define(named if every else dict(islice(named.items(), 1)), properties)

    def _define(self, servers: Mapping[str, Any], properties: Properties) -> Members:
        shared = {key: properties[key] for key in _shared(self.one) if properties[key] is not None}
        return {name: {"type": self.one.name, "properties": {**shared, "server": id}} for name, id in servers.items()}

    def select(self, context: Context, resource: Resource, properties: Properties) -> Resource:
        return label_groups.choose(context, resource, properties)

    def adopt(self, context: Context, resource: Resource, properties: Properties) -> Outcome:
        return super().adopt(context, self.select(context, resource, properties), properties)

    def delete(self, context: Context, resource: Resource) -> Outcome:
        server_lists.remove_selector(context.tx, resource.id)
        return super().delete(context, resource)

    def check(self, context: Context, resource: Resource) -> Outcome:
        outcome = super().check(context, resource)
        if outcome.done and label_groups.is_outdated(context, resource):  # the servers changed while it was busy
            label_groups.request_refresh(context.tx, context.env.work, resource.id)
        return outcome

    def validate(self, properties: Properties) -> None:
        label_groups.validate(properties)

    def check_policy(self, policy: Any, properties: Properties) -> None:
        """
        Validate the ``update_policy``.

        Raises PropertyError, also if a server has the name of another server's health check member.
        """
        super().check_policy(policy, properties)
        servers = properties["servers"]
        if servers in (None, UNKNOWN) or not isinstance(policy, Mapping):
            return
        for name, entry in policy.items():
            has_check = isinstance(entry, Mapping) and entry.get("health_check") is not None
            if has_check and (problem := describe_clash(servers)):
                raise PropertyError((name, "health_check"), problem)

    def may_return(self, resource: Resource, replacement: Resource) -> bool:
        return False  # the replacement may have run on the same servers

    def predecessors(self, context: Context, definition: Definition, properties: Properties) -> Iterator[str]:
        """
        Yield the ids of the stack's groups that run something on the same servers at their removal, if they have the
        same name or the same config.
        """
        content = deployment_runs.content_for(context, properties)
        for resource in resources.of_stack(context.tx, context.stack_id):
            is_group = _WHICH.keys() <= resource.properties.keys()
            if (
                is_group
                and deployment_runs.is_former(context, resource, definition.name, content)
                and _may_share_servers(context, resource, properties)
            ):
                yield resource.id

    def collect(self, resource: Resource, scope: LiveScope, name: str, path: tuple[Any, ...]) -> Any:
        if name == _FAILED:
            return select(dict(resource.data.get("failed") or {}), path)
        wanted = _ALL.get(name, name)
        asked = label_groups.members(resource, resource.properties)
        return {server: scope.attribute(server, wanted, path) for server in scope.names if server in asked}


class SoftwareDeployment(DeploymentType):
    name = "OS::Heat::SoftwareDeployment"
    description = "Runs a software config on a server."


class StructuredDeployment(DeploymentType):
    name = "OS::Heat::StructuredDeployment"
    description = "Runs a structured config on a server, with values put in place."
    properties = {
        **PROPERTIES,
        "input_key": Property(kind="string", default="get_input", description="Marks where a value goes."),
        "input_values_validate": Property(
            kind="string",
            default="LAX",
            allowed=("LAX", "STRICT"),
            description="STRICT: a missing value fails the deployment, instead of being null.",
        ),
    }


class SoftwareDeploymentGroup(DeploymentGroupType):
    name = "OS::Heat::SoftwareDeploymentGroup"
    aliases = ("OS::Heat::SoftwareDeployments",)
    description = "Runs a software config on several servers, all at once or in batches."
    one = SoftwareDeployment
    properties = group_properties(SoftwareDeployment)


class StructuredDeploymentGroup(DeploymentGroupType):
    name = "OS::Heat::StructuredDeploymentGroup"
    aliases = ("OS::Heat::StructuredDeployments",)
    description = "Runs a structured config on several servers, all at once or in batches."
    one = StructuredDeployment
    properties = group_properties(StructuredDeployment)
