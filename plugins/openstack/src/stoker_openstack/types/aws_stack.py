"""
AWS::CloudFormation::Stack: a nested stack of a template that a property names.

As for template files that are types, the text of the template is among the files of the request, under the value of
``TemplateURL``. Stoker fetches no URL.
"""

from __future__ import annotations

from typing import Any

from stoker.hot import UNKNOWN
from stoker.model.stack import Resource
from stoker.resources.base import Context, NoSuchAttribute, Properties
from stoker.resources.properties import Property
from stoker.resources.roles import NestedSpec
from stoker.types import nested_stacks
from stoker.types.nested_stacks import NestedType

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
