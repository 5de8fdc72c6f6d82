"""Types of responses about whole stacks: exports and previews."""

from __future__ import annotations

from typing import Annotated, Any

from msgspec import UNSET, Meta

from stoker.http.fields import Absent, Answer, Count, Id, Time, Unchecked
from stoker.http.heat.serializers import StackBase, StackOutput
from stoker.model.status import Action, Status


class ExportedResource(Answer):
    name: Id
    resource_id: str | None
    type: str
    action: Action
    status: Status
    metadata: dict[str, Any]
    resource_data: dict[str, Any]
    resources: (
        Annotated[
            dict[str, ExportedResource],
            Meta(description="The resources of the nested stack that the resource represents"),
        ]
        | Absent
    ) = UNSET


class Imported(Unchecked):
    schema = list[dict[str, Any]]


class ExportedStack(Answer):
    """A stack with everything that is required to adopt its objects."""

    name: Id
    id: Id
    action: Action
    status: Status
    template: dict[str, Any]
    environment: dict[str, Any]
    files: dict[str, str]
    project_id: str
    stack_user_project_id: str
    tags: list[str]
    resources: dict[str, ExportedResource]
    #: Objects of another Heat that Stoker creates with their ids before the resources adopt them.
    software_configs: Imported | Absent = UNSET
    software_deployments: Imported | Absent = UNSET
    servers: Imported | Absent = UNSET


class ResourceIdentity(Answer):
    tenant: str
    stack_name: str
    stack_id: Id
    path: str


class PlannedResource(Answer):
    """A resource as a preview shows it."""

    resource_name: Id
    resource_type: str
    resource_action: Action
    resource_status: Status
    resource_status_reason: str
    resource_identity: ResourceIdentity
    stack_identity: ResourceIdentity
    stack_name: Id
    physical_resource_id: str | None
    creation_time: Time | None
    updated_time: Time | None
    description: str
    metadata: dict[str, Any]
    attributes: dict[str, Any]
    required_by: list[str]
    properties: dict[str, Any]


class ResourceChange(PlannedResource):
    changed_properties: Annotated[list[str], Meta(description="Names of the properties that differ")]
    previous_properties: Annotated[dict[str, Any], Meta(description="The present values of these properties")]


class NewResource(PlannedResource):
    parent_resource: str | Absent = UNSET


class NewResources(Unchecked):
    """The resources of a planned stack: a nested stack is the list of its resources."""


NewResources.schema = NewResource | list[NewResources]


class PreviewedStack(StackBase, kw_only=True):
    template_description: str
    notification_topics: list[str]
    capabilities: list[str]
    parameters: Annotated[dict[str, str], Meta(description="All values as text, hidden ones as ******")]
    disable_rollback: bool
    timeout_mins: Count | None
    outputs: list[StackOutput]
    resources: list[NewResources]


class ResourceChanges(Answer):
    unchanged: list[ResourceChange]
    updated: list[ResourceChange]
    replaced: list[ResourceChange]
    added: list[ResourceChange]
    deleted: list[ResourceChange]
