"""
The base of the resource types whose physical objects belong to a cloud.

A type is a schema, whose properties become members of the service's create request, and attributes that read the
service's representation. A type whose request is not a table of its properties replaces ``specify``::

    class Net(CloudType):
        name = "OS::Neutron::Net"
        kind = CloudKind.NETWORK
        properties = {
            "name": object_name(update_allowed=True),
            "qos_policy": text("Name or id of the QoS policy.", key="qos_policy_id"),
        }
        attributes = {"status": "The network's status."}
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from msgspec.structs import replace

from stoker.model.stack import Action, Resource, Status
from stoker.resources.base import (
    ADOPTED_NAME,
    DONE,
    LONGEST_NAME,
    Context,
    Outcome,
    Properties,
    Replace,
    ResourceFailure,
    ResourceType,
    SavesState,
    physical_name,
)
from stoker_openstack.model import Cloud, CloudAction, CloudKind, CloudObject
from stoker_openstack.types.cloud_properties import members, value_specs

#: Key of ``observed`` for the ids of what the last SNAPSHOT saved.
SNAPSHOT = "stoker:snapshot"
#: States of objects that stay broken.
_BROKEN = ("ERROR", "DELETED", "SOFT_DELETED")
NO_CLOUD = (
    "no cloud is configured: start Stoker with --cloud NAME (a cloud in clouds.yaml), or, for development, with"
    " --local-servers-unsafe"
)


class CloudType(SavesState, ResourceType):
    """The resource type of one kind of cloud objects."""

    retries = True
    needs_provider = NO_CLOUD
    kind: CloudKind
    actions: Mapping[Action, CloudAction] = {Action.CHECK: CloudAction.CHECK}

    def specify(self, context: Context, resource: Resource, properties: Properties) -> dict[str, Any]:
        """
        Return the specification of a resource's object (see ``model.CloudObject``): the members that the properties
        state, the physical name of an object that has a name, and the entries of ``value_specs``.
        """
        specified = members(self.properties or {}, properties)
        if "name" in properties:
            specified["name"] = properties["name"] or physical_name(context, resource)
        return {**specified, **value_specs(properties)}

    def create(self, context: Context, resource: Resource, properties: Properties) -> Outcome:
        """
        Create the object; a retry takes over what an earlier attempt created.

        Raises Replace if that object is broken.
        """
        self.refuse_broken(context, resource)
        return self.ensure(context, resource, self.specify(context, resource, properties))

    def update(self, context: Context, resource: Resource, properties: Properties) -> Outcome:
        """Change the object to its new specification."""
        return self.ensure(context, resource, self.specify(context, resource, properties))

    def adopt(self, context: Context, resource: Resource, properties: Properties) -> Outcome:
        """Take over the object with the resource's physical id, and leave it as it is."""
        specification = self.specify(context, resource, properties)
        requested = self.request(context, resource, CloudAction.ADOPT, specification, external_id=resource.physical_id)
        return adoption_outcome(resource, requested)

    def act(self, context: Context, resource: Resource, action: Action) -> Outcome:
        """Start another action on the existing object. An object that is only referred to is read at most."""
        requested = self.actions[action]
        if resource.definition.get("external_id") and requested is not CloudAction.CHECK:
            return DONE
        current = require_cloud(context).find(context.tx, resource.id)
        if current is None:
            raise ResourceFailure(f"The {self.kind.replace('_', ' ')} does not exist.")
        return outcome_of(self.request(context, resource, requested, current.specification))

    def refer(self, context: Context, resource: Resource) -> Outcome:
        """Refer to an existing object (``external_id`` of a template), which stays unchanged."""
        referred = self.request(context, resource, CloudAction.CHECK, {}, external_id=resource.physical_id)
        return outcome_of(referred)

    def delete(self, context: Context, resource: Resource) -> Outcome:
        """Delete the object; done when the cloud no longer has it. An object that is not owned stays."""
        cloud = find_cloud(context)
        current = cloud.find(context.tx, resource.id) if cloud else None
        if cloud is None or current is None:
            return DONE
        if not is_owned(current):
            cloud.forget(context.tx, resource.id)
            return DONE
        arguments = {"snapshot": True} if resource.definition.get("deletion_policy") == "Snapshot" else {}
        return outcome_of(
            self.request(context, resource, CloudAction.DELETE, current.specification, arguments=arguments)
        )

    def saved(self, context: Context, resource: Resource) -> Mapping[str, Any]:
        """Return the ids of what the last SNAPSHOT saved."""
        saved: Mapping[str, Any] = observe(context, resource).get(SNAPSHOT) or {}
        return saved

    def delete_saved(self, context: Context, resource: Resource, saved: Mapping[str, Any]) -> None:
        """Request the deletion of what an earlier SNAPSHOT saved."""
        current = find_object(context, resource)
        if current is not None:
            self.request(context, resource, CloudAction.DELETE_SNAPSHOT, current.specification, arguments=saved)

    def check(self, context: Context, resource: Resource) -> Outcome:
        """Return the state of the action in progress."""
        current = require_cloud(context).find(context.tx, resource.id)
        if current is None:
            return DONE
        return adoption_outcome(resource, current)

    def retain(self, context: Context, resource: Resource) -> None:
        """Keep the object without its resource."""
        if cloud := find_cloud(context):
            cloud.forget(context.tx, resource.id)

    stop_referring = retain

    def attribute(self, context: Context, resource: Resource, name: str) -> Any:
        """Return the entry ``name`` of the last representation."""
        return observe(context, resource).get(name)

    def show(self, context: Context, resource: Resource) -> Mapping[str, Any]:
        return observe(context, resource)

    def refuse_broken(self, context: Context, resource: Resource) -> None:
        """
        Raise Replace if an earlier attempt has created an object that the cloud represents as in error, so that only
        another object can replace it.
        """
        status = observe(context, resource).get("status") if resource.physical_id else None
        if str(status or "").upper() in _BROKEN:
            raise Replace(resource.name)

    def ensure(self, context: Context, resource: Resource, specification: Mapping[str, Any]) -> Outcome:
        """Create the object, or change it to the specification."""
        return outcome_of(self.request(context, resource, CloudAction.ENSURE, specification))

    def request(
        self,
        context: Context,
        resource: Resource,
        action: CloudAction,
        specification: Mapping[str, Any],
        *,
        external_id: str | None = None,
        arguments: Mapping[str, Any] | None = None,
    ) -> CloudObject:
        """
        Send a request to the cloud; return the object.

        Raises ResourceFailure if there is no cloud, if the name is too long, or if the object's adoption is not
        complete.
        """
        cloud = require_cloud(context)
        if resource.physical_id and action is not CloudAction.ADOPT:
            current = cloud.find(context.tx, resource.id)
            if current is not None and not is_owned(current):
                waits = current.reason or "wait until the adoption ends, and repeat"
                noun = self.kind.replace("_", " ")
                raise ResourceFailure(f"The {noun} ({resource.physical_id}) is not adopted: {waits}")
        name = str(specification.get("name") or physical_name(context, resource))
        if len(name) > LONGEST_NAME:  # of value_specs, for example
            raise ResourceFailure(f"name must have at most {LONGEST_NAME} characters, not {len(name)}")
        return cloud.request(
            context.tx,
            CloudObject(
                id=resource.id,
                kind=self.kind,
                action=action,
                project_id=context.project_id,
                root_id=context.stack.root_id,
                name=name,
                specification=specification,
                arguments=arguments or {},
                external_id=external_id,
            ),
        )


def find_cloud(context: Context) -> Cloud | None:
    """Return the site's cloud; None if none is configured."""
    cloud: Cloud | None = context.env.provider.offered.get(Cloud)
    return cloud


def require_cloud(context: Context) -> Cloud:
    """Return the configured cloud. Raises ResourceFailure if there is none."""
    cloud = find_cloud(context)
    if cloud is None:
        raise ResourceFailure(NO_CLOUD)
    return cloud


def find_object(context: Context, resource: Resource) -> CloudObject | None:
    """Return the resource's object; None without a cloud or an object."""
    cloud = find_cloud(context)
    return cloud.find(context.tx, resource.id) if cloud else None


def outcome_of(current: CloudObject) -> Outcome:
    """Return the outcome of an object's action. Raises ResourceFailure if the action failed."""
    if current.status is Status.FAILED:
        failure = ResourceFailure(current.reason, current.error_type)
        failure.outcome = Outcome(physical_id=current.external_id)
        raise failure
    return Outcome(done=current.status is Status.COMPLETE, physical_id=current.external_id, reason=current.reason)


def adoption_outcome(resource: Resource, current: CloudObject) -> Outcome:
    """
    Return the outcome of any action. A complete adoption also stores the name of the object, which it keeps.

    Raises ResourceFailure if the action failed.
    """
    outcome = outcome_of(current)
    name = current.external_id if current.kind is CloudKind.CONTAINER else current.observed.get("name")
    if resource.action is not Action.ADOPT or not outcome.done or not name:
        return outcome
    return replace(outcome, data={**resource.data, ADOPTED_NAME: name})


def is_owned(current: CloudObject) -> bool:
    """Return whether the object belongs to its resource: one that was created does, an adopted one once it is taken."""
    return current.action is not CloudAction.ADOPT or current.status is Status.COMPLETE


def observe(context: Context, resource: Resource) -> Mapping[str, Any]:
    """Return the last representation of the resource's object; empty if there is no object."""
    current = find_object(context, resource)
    return current.observed if current else {}


def was_specified(context: Context, resource: Resource, member: str) -> bool:
    """
    Return whether an update has to empty this member if the template no longer has it.

    The last specification decides, not the former properties: those of an update that failed lack the member already.
    """
    current = find_object(context, resource)
    if current is None or member not in current.specification:
        return False
    return bool(current.specification[member]) or current.status is not Status.COMPLETE
