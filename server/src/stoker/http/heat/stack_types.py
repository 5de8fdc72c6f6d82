"""Types of requests and responses about whole stacks: templates and their files, exports and previews."""

from __future__ import annotations

from typing import Annotated, Any

from msgspec import UNSET, Meta

from stoker.http.contracts import Absent, Answer, Count, Id, Time, described
from stoker.http.heat.serializers import StackBase, StackOutput
from stoker.model.status import Action, Status

TEMPLATE_EXAMPLE = {
    "heat_template_version": "2018-08-31",
    "parameters": {"length": {"type": "number", "default": 8, "constraints": [{"range": {"min": 1, "max": 64}}]}},
    "resources": {
        "config": {
            "type": "OS::Heat::SoftwareConfig",
            "properties": {"group": "script", "config": "true", "outputs": [{"name": "result"}]},
        },
        "secret": {"type": "OS::Heat::RandomString", "properties": {"length": {"get_param": "length"}}},
        "both": {"type": "OS::Heat::Value", "properties": {"value": [{"get_resource": "config"}, "and more"]}},
    },
    "outputs": {"secret": {"value": {"get_attr": ["secret", "value"]}}},
}


Template = Annotated[Any, described(dict[str, Any] | str, "A template as data or as YAML text.")]
Environment = Annotated[Any, described(dict[str, Any] | str, "An environment as data or as YAML text.")]
EnvironmentFiles = Annotated[Any, described(list[str], "The names of those files that are environments.")]
Files = Annotated[Any, described(dict[str, str], "Texts by the names that templates use.")]
ParameterValues = Annotated[Any, described(dict[str, Any], "Values of a template's parameters by name.")]
_Imported = Annotated[Any, described(list[dict[str, Any]])]


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
    software_configs: _Imported | Absent = UNSET
    software_deployments: _Imported | Absent = UNSET
    servers: _Imported | Absent = UNSET


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


NewResources = Annotated[
    Any, described(NewResource | list[Any], "A planned resource; a nested stack is the list of its resources.")
]


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
