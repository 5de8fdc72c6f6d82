"""/v1/{project}/resource_types, template_versions and validate: the elements of templates."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Annotated, Any, Literal

from msgspec import UNSET, Meta

from stoker import hot
from stoker.hot import syntaxes
from stoker.hot.regex import BadPattern, compile_pattern
from stoker.http.api import warning_headers
from stoker.http.contracts import Absent, Answer, Id, Query, described, operation
from stoker.http.heat.stack_requests import TEMPLATE_EXAMPLE, ValidationBody, open_constraints
from stoker.http.request import RequestContext, Response
from stoker.model.errors import EntityNotFound, Invalid
from stoker.resources.base import ResourceType
from stoker.resources.properties import Kind, Property
from stoker.stacks.templates.validation import describe_template

#: The parameter type for each property type.
_PARAMETERS = {
    "string": "string",
    "integer": "number",
    "number": "number",
    "boolean": "boolean",
    "list": "comma_delimited_list",
    "map": "json",
    "any": "json",
}
_CFN = {"string": "String", "number": "Number", "boolean": "Boolean", "comma_delimited_list": "CommaDelimitedList"}


class TypeSummary(Answer):
    resource_type: Id
    description: str


_TypeEntry = Annotated[Any, described(Id | TypeSummary)]


class Range(Answer):
    min: float | Absent = UNSET
    max: float | Absent = UNSET


class Constraint(Answer):
    allowed_values: list[Any] | Absent = UNSET
    range: Range | Absent = UNSET
    custom_constraint: Annotated[str, Meta(description="The check of a name by the cloud")] | Absent = UNSET


class PropertySchema(Answer):
    type: Kind
    required: bool
    update_allowed: bool
    immutable: bool
    description: str | Absent = UNSET
    default: Any = UNSET
    constraints: list[Constraint] | Absent = UNSET
    schema: (
        Annotated[
            dict[str, PropertySchema], Meta(description="The schemas of a map's entries; `*` for a list's entries")
        ]
        | Absent
    ) = UNSET


class AttributeSchema(Answer):
    description: str
    type: Kind | Absent = UNSET


class SupportStatus(Answer):
    status: str
    message: str | None
    version: str | None
    previous_status: dict[str, Any] | None


class ShownResourceType(Answer):
    resource_type: str
    properties: dict[str, PropertySchema]
    attributes: dict[str, AttributeSchema]
    support_status: SupportStatus
    description: str | Absent = UNSET


class TemplateVersion(Answer):
    version: str
    type: Literal["hot", "cfn"]
    aliases: list[str]


class TemplateFunction(Answer):
    functions: str
    description: str


class ValidatedParameter(Answer, kw_only=True):
    Type: Literal["String", "Number", "CommaDelimitedList", "Json", "Boolean"]
    Description: str
    NoEcho: Literal["true", "false"]
    Label: str
    Default: Any = UNSET
    Value: Any = UNSET
    Tags: list[str] | Absent = UNSET
    MinLength: float | Absent = UNSET
    MaxLength: float | Absent = UNSET
    MinValue: float | Absent = UNSET
    MaxValue: float | Absent = UNSET
    Step: float | Absent = UNSET
    Offset: float | Absent = UNSET
    AllowedValues: list[Any] | Absent = UNSET
    AllowedPattern: str | Absent = UNSET
    CustomConstraint: str | Absent = UNSET
    ConstraintDescription: str | Absent = UNSET


class _Validated(Answer, kw_only=True):
    Description: str
    Parameters: dict[str, ValidatedParameter]
    ParameterGroups: list[dict[str, Any]] | Absent = UNSET
    NestedParameters: dict[str, NestedTemplate] | Absent = UNSET


class NestedTemplate(_Validated, kw_only=True):
    Type: str


class ValidatedEnvironment(Answer):
    """The environment with the request's own parameters, hidden ones as ******."""

    parameters: dict[str, Any]
    parameter_defaults: dict[str, Any]
    resource_registry: dict[str, Any]
    event_sinks: list[Any]


class ValidatedTemplate(_Validated, kw_only=True):
    Environment: ValidatedEnvironment
    Warnings: list[str] | Absent = UNSET


class TypesQuery(Query):
    name: Annotated[str, Meta(description="A regular expression that the name begins with")] = ""
    support_status: str | None = None
    with_description: bool = False


class DescriptionQuery(Query):
    with_description: bool = False


class TypeTemplateQuery(Query):
    template_type: Literal["cfn", "hot"] = "cfn"


class FunctionQuery(Query):
    with_condition_func: bool = False


class ValidationQuery(Query):
    show_nested: bool = False


@operation(200, {"resource_types": list[_TypeEntry]})
def index(request: RequestContext, query: TypesQuery) -> dict[str, Any]:
    """List the names of resource types that match the query; with ``with_description`` also their descriptions."""
    try:
        pattern = compile_pattern(query.name)
        matches = {
            name: kind
            for name, kind in sorted(request.app.engine.types.items())
            if name == kind.name and pattern.match(name) and query.support_status in (None, "SUPPORTED")
        }
    except BadPattern as error:
        raise Invalid(f"name: {error}") from None
    if query.with_description:
        shown = [TypeSummary(name, kind.description) for name, kind in matches.items()]
        return {"resource_types": shown}
    return {"resource_types": list(matches)}


@operation(200, ShownResourceType)
def show(request: RequestContext, query: DescriptionQuery) -> ShownResourceType:
    """Return the properties and attributes of a resource type."""
    kind = _kind(request)
    attributes = {name: AttributeSchema(words) for name, words in (kind.attributes or {}).items()}
    return ShownResourceType(
        resource_type=kind.name,
        properties={name: _property(schema) for name, schema in (kind.properties or {}).items()},
        attributes={**attributes, "show": AttributeSchema("Detailed information about resource.", "map")},
        support_status=SupportStatus("SUPPORTED", None, None, None),
        description=kind.description if query.with_description else UNSET,
    )


@operation(200, dict[str, Any])
def template(request: RequestContext, query: TypeTemplateQuery) -> dict[str, Any]:
    """Return a template with one resource of the type, its properties as parameters and its attributes as outputs."""
    kind = _kind(request)
    return _hot_template(kind) if query.template_type == "hot" else _cfn_template(kind)


@operation(200, {"template_versions": list[TemplateVersion]})
def versions(_: RequestContext) -> dict[str, Any]:
    """List the versions of templates."""
    name = "heat_template_version.{}".format
    shown = [
        TemplateVersion(name(version), "hot", [name(alias)] if alias else []) for version, alias in hot.VERSIONS.items()
    ]
    return {"template_versions": shown + [TemplateVersion(v, "cfn", []) for v in _foreign_versions()]}


@operation(200, {"template_functions": list[TemplateFunction]})
def functions(request: RequestContext, query: FunctionQuery) -> dict[str, Any]:  # noqa: ARG001  # accepted as in Heat
    """List the functions of a template version. Raises EntityNotFound."""
    version = _version(request.path["version"])
    shown = [TemplateFunction(name, words) for name, words in sorted(hot.functions_of(version).items())]
    return {"template_functions": shown}


def _foreign_versions() -> dict[str, str]:
    """Return the versions of other syntaxes by their names in the list of template versions."""
    return {f"{key}.{version}": version for version, key in syntaxes.versions().items()}


def _version(name: str) -> str:
    if (foreign := _foreign_versions().get(name)) is not None:
        return foreign
    version = name.removeprefix("heat_template_version.")
    version = next((date for date, alias in hot.VERSIONS.items() if alias and alias == version), version)
    if version not in hot.VERSIONS or not name.startswith("heat_template_version."):
        raise EntityNotFound(f"Template with version {name} not found")
    return version


@operation(200, ValidatedTemplate, example={"template": TEMPLATE_EXAMPLE})
def validate(request: RequestContext, body: ValidationBody, query: ValidationQuery) -> Response:
    """Validate a template and describe its parameters. Raises Invalid."""
    shown = describe_template(
        request.app.engine,
        body.stack_request(request),
        show_nested=query.show_nested,
        constraints=open_constraints(request),
    )
    return Response(200, shown, warning_headers(shown.get("Warnings", ())))


def _kind(request: RequestContext) -> ResourceType:
    name = request.path["type_name"]
    kind = request.app.engine.types.get(name)
    if kind is None:
        raise EntityNotFound(f"The Resource Type ({name}) could not be found.")
    return kind


def _property(schema: Property) -> PropertySchema:
    inner = schema.schema if schema.each is None else {"*": schema.each}
    return PropertySchema(
        type=schema.kind,
        required=schema.required,
        update_allowed=schema.update_allowed,
        immutable=False,
        description=schema.description or UNSET,
        default=UNSET if schema.default is None else schema.default,
        constraints=_constraints(schema) or UNSET,
        schema=UNSET if inner is None else {name: _property(part) for name, part in inner.items()},
    )


def _constraints(schema: Property) -> list[Any]:
    constraints = {
        "custom_constraint": schema.constraint,
        "allowed_values": list(schema.allowed),
        "range": _without_none({"min": schema.minimum, "max": schema.maximum}),
    }
    return [{name: value} for name, value in constraints.items() if value]


def _hot_template(kind: ResourceType) -> dict[str, Any]:
    return {
        "heat_template_version": "2016-10-14",
        "description": f"Initial template of {kind.name.rpartition('::')[2]}",
        "parameters": {name: _parameter(schema) for name, schema in (kind.properties or {}).items()},
        "resources": {
            kind.name.rpartition("::")[2]: {
                "type": kind.name,
                "properties": {name: {"get_param": name} for name in kind.properties or {}},
            }
        },
        "outputs": {
            name: {"description": words, "value": {"get_attr": [kind.name.rpartition("::")[2], name]}}
            for name, words in (kind.attributes or {}).items()
        },
    }


def _parameter(schema: Property) -> dict[str, Any]:
    optional = {
        "description": schema.description or None,
        "default": schema.default,
        "constraints": _constraints(schema) or None,
    }
    return {"type": _PARAMETERS[schema.kind], **_without_none(optional)}


def _cfn_template(kind: ResourceType) -> dict[str, Any]:
    name = kind.name.rpartition("::")[2]
    return {
        "HeatTemplateFormatVersion": "2012-12-12",
        "Description": f"Initial template of {name}",
        "Parameters": {key: _cfn_parameter(schema) for key, schema in (kind.properties or {}).items()},
        "Resources": {
            name: {"Type": kind.name, "Properties": {key: {"Ref": key} for key in kind.properties or {}}},
        },
        "Outputs": {
            key: {"Description": words, "Value": {"Fn::GetAtt": [name, key]}}
            for key, words in (kind.attributes or {}).items()
        },
    }


def _cfn_parameter(schema: Property) -> dict[str, Any]:
    optional = {
        "Description": schema.description or None,
        "Default": schema.default,
        "AllowedValues": list(schema.allowed) or None,
    }
    return {"Type": _CFN.get(_PARAMETERS[schema.kind], "Json"), **_without_none(optional)}


def _without_none(members: Mapping[str, Any]) -> dict[str, Any]:
    return {name: value for name, value in members.items() if value is not None}
