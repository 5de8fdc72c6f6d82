"""
The types of CloudFormation itself: nested stacks of a template that a property names, and wait conditions with handles.

As for template files that are types, the text of the template is among the files of the request, under the value of
``TemplateURL``. Stoker fetches no URL. Handles take signals at pre-signed URLs of the CFN API.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any
from urllib.parse import unquote, urlsplit

from stoker.hot import UNKNOWN
from stoker.model.errors import Invalid
from stoker.model.ids import Arn
from stoker.model.stack import Resource
from stoker.resources.base import Context, NoSuchAttribute, Outcome, Properties, Signalled, target_of
from stoker.resources.properties import Property
from stoker.resources.roles import NestedSpec
from stoker.store import resources
from stoker.types import nested_stacks
from stoker.types.nested_stacks import NestedType
from stoker.types.waits import HandleType, WaitType, Words, record, schema

_OUTPUTS = "Outputs."


class AwsStack(NestedType):
    name = "AWS::CloudFormation::Stack"
    description = (
        "A nested stack of a template that came with the request. Its outputs are the attributes Outputs.NAME."
    )
    properties = {
        "TemplateURL": Property(
            kind="string",
            required=True,
            update_allowed=True,
            description="Name of the template among the files of the request.",
        ),
        "TimeoutInMinutes": Property(
            kind="integer", update_allowed=True, description="Not used: the timeout of the outermost stack applies."
        ),
        "Parameters": Property(kind="map", update_allowed=True, description="Values of the template's parameters."),
    }
    has_foreseeable_members = True

    def attribute_at(self, context: Context, resource: Resource, name: str, path: tuple[Any, ...]) -> Any:
        """Return the nested stack's output NAME for ``Outputs.NAME``. Raises NoSuchAttribute for other names."""
        if not name.startswith(_OUTPUTS):
            raise NoSuchAttribute(name)
        try:
            return nested_stacks.get_output(context, resource, name.removeprefix(_OUTPUTS), path)
        except NoSuchAttribute:
            raise NoSuchAttribute(name) from None

    def reference(self, context: Context, resource: Resource) -> Any:
        return nested_stacks.get_reference(context, resource)

    def template_file(self, properties: Properties) -> tuple[str, str, Any] | None:
        url = properties["TemplateURL"]
        return None if url is UNKNOWN else ("TemplateURL", url, properties["Parameters"])

    def spec(self, context: Context, resource: Resource, properties: Properties) -> NestedSpec:
        return NestedSpec(nested_stacks.find_file(context, properties["TemplateURL"]), properties["Parameters"] or {})


_WORDS = Words(handle="Handle", timeout="Timeout", count="Count", data="Data")


class WaitCondition(WaitType):
    name = "AWS::CloudFormation::WaitCondition"
    words = _WORDS
    properties = schema(_WORDS)
    attributes = {_WORDS.data: "What the signals brought, in JSON, by their ids."}

    def find_handle(self, context: Context, reference: str) -> Resource | None:
        _, separator, path = unquote(urlsplit(reference).path).partition("/waitcondition/")
        try:
            arn = Arn.parse(path) if separator else None
        except Invalid:
            arn = None
        own = (context.project_id, context.stack_id)
        if arn is None or arn.resource is None or (arn.project_id, arn.stack_id) != own:
            return None
        resource = resources.find_by_name(context.tx, context.stack_id, arn.resource)
        # A replaced handle may have had the same name, so the URL decides.
        return resource if resource is not None and resource.data.get("url") == reference else None


class WaitConditionHandle(HandleType):
    name = "AWS::CloudFormation::WaitConditionHandle"
    description = "Takes signals for wait conditions, at a pre-signed URL."
    condition = WaitCondition

    def create(self, context: Context, resource: Resource, properties: Properties) -> Outcome:
        url = context.env.platform.signed_url(target_of(context, resource), "waitcondition", "PUT")
        return Outcome(physical_id=resource.id, data={"url": url})

    def signal(self, context: Context, resource: Resource, details: Mapping[str, Any]) -> Signalled:
        """Record a signal. Raises Invalid if ``details`` is not a complete signal."""
        keys = ("Status", "Reason", "Data", "UniqueId")
        if sorted(details) != sorted(keys):
            raise Invalid(f"a signal to {resource.name} has {', '.join(keys)}, all of them")
        return record(resource, details, keys)


class RenewedHandle(WaitConditionHandle):
    name = "OS::Heat::UpdateWaitConditionHandle"
    description = "Takes signals for wait conditions, at a URL that every update renews."

    def is_stale(self, context: Context, resource: Resource) -> bool:
        return True
