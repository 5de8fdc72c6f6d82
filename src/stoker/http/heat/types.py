"""/v1/{project}/resource_types, template_versions and validate: the elements of templates."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from stoker import hot
from stoker.hot.regex import BadPattern, compile_pattern
from stoker.http import params
from stoker.http.heat import stack_requests, warnings
from stoker.http.request_context import RequestContext, Response
from stoker.model.errors import EntityNotFound, Invalid
from stoker.resources.base import ResourceType
from stoker.resources.properties import Property
from stoker.stacks.templates.validation import describe_template

_SUPPORT = {"status": "SUPPORTED", "message": None, "version": None, "previous_status": None}
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

#: The versions by their names in the list of template versions.
_CFN_VERSIONS = {f"{key}.{version}": version for version, key in hot.CFN_VERSIONS.items()}


def index(request: RequestContext) -> Response:
    """List the names of resource types that match the query; with ``with_description`` also their descriptions."""
    described = params.flag(request.query.get("with_description"), "with_description")
    status = request.query.get("support_status")
    try:
        pattern = compile_pattern(request.query.get("name") or "")
        shown = {
            name: each
            for name, each in sorted(request.app.engine.types.items())
            if name == each.name and pattern.match(name) and status in (None, "SUPPORTED")
        }
    except BadPattern as error:
        raise Invalid(f"name: {error}") from None
    if described:
        said = [{"resource_type": name, "description": each.description} for name, each in shown.items()]
        return Response(200, {"resource_types": said})
    return Response(200, {"resource_types": list(shown)})


def show(request: RequestContext) -> Response:
    kind = _kind(request)
    shown: dict[str, Any] = {
        "resource_type": kind.name,
        "properties": {name: _property(each) for name, each in (kind.properties or {}).items()},
        "attributes": {
            **{name: {"description": words} for name, words in (kind.attributes or {}).items()},
            "show": {"description": "Detailed information about resource.", "type": "map"},
        },
        "support_status": _SUPPORT,
    }
    if params.flag(request.query.get("with_description"), "with_description"):
        shown["description"] = kind.description
    return Response(200, shown)


def template(request: RequestContext) -> Response:
    """Return a template with one resource of the type, its properties as parameters and its attributes as outputs."""
    kind = _kind(request)
    form = request.query.get("template_type", "cfn")
    if form not in ("cfn", "hot"):
        raise Invalid(f"template_type must be cfn or hot, not {form}")
    return Response(200, _hot_template(kind) if form == "hot" else _cfn_template(kind))


def versions(_call: RequestContext) -> Response:
    shown = [
        {
            "version": f"heat_template_version.{version}",
            "type": "hot",
            "aliases": [f"heat_template_version.{alias}"] if alias else [],
        }
        for version, alias in hot.VERSIONS.items()
    ]
    shown += [{"version": name, "type": "cfn", "aliases": []} for name in _CFN_VERSIONS]
    return Response(200, {"template_versions": shown})


def functions(request: RequestContext) -> Response:
    """List the functions of a template version. Raises EntityNotFound."""
    version = _version(request.path["version"])
    params.flag(request.query.get("with_condition_func"), "with_condition_func")
    shown = [{"functions": name, "description": words} for name, words in sorted(hot.functions_of(version).items())]
    return Response(200, {"template_functions": shown})


def _version(said: str) -> str:
    if said in _CFN_VERSIONS:
        return _CFN_VERSIONS[said]
    version = said.removeprefix("heat_template_version.")
    version = next((date for date, alias in hot.VERSIONS.items() if alias and alias == version), version)
    if version not in hot.VERSIONS or not said.startswith("heat_template_version."):
        raise EntityNotFound(f"Template with version {said} not found")
    return version


def validate(request: RequestContext) -> Response:
    """Validate a template and describe its parameters. Raises Invalid."""
    body = stack_requests.body(request)
    nested = bool(params.flag(request.query.get("show_nested"), "show_nested"))
    shown = describe_template(request.app.engine, stack_requests.stack_request(body), show_nested=nested)
    return Response(200, shown, warnings.headers(shown.get("Warnings", ())))


def _kind(request: RequestContext) -> ResourceType:
    name = request.path["type_name"]
    found = request.app.engine.types.get(name)
    if found is None:
        raise EntityNotFound(f"The Resource Type ({name}) could not be found.")
    return found


def _property(each: Property) -> dict[str, Any]:
    shown: dict[str, Any] = {
        "type": each.kind,
        "required": each.required,
        "update_allowed": each.update_allowed,
        "immutable": False,
    }
    if each.description:
        shown["description"] = each.description
    if each.default is not None:
        shown["default"] = each.default
    if constraints := _constraints(each):
        shown["constraints"] = constraints
    if each.schema is not None:
        shown["schema"] = {name: _property(inner) for name, inner in each.schema.items()}
    if each.each is not None:
        shown["schema"] = {"*": _property(each.each)}
    return shown


def _constraints(each: Property) -> list[dict[str, Any]]:
    found: list[dict[str, Any]] = []
    if each.allowed:
        found.append({"allowed_values": list(each.allowed)})
    limits = {"min": each.minimum, "max": each.maximum}
    if said := {name: value for name, value in limits.items() if value is not None}:
        found.append({"range": said})
    return found


def _hot_template(kind: ResourceType) -> dict[str, Any]:
    return {
        "heat_template_version": "2016-10-14",
        "description": f"Initial template of {kind.name.rpartition('::')[2]}",
        "parameters": {name: _parameter(each) for name, each in (kind.properties or {}).items()},
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


def _parameter(each: Property) -> dict[str, Any]:
    said: dict[str, Any] = {"type": _PARAMETERS[each.kind]}
    if each.description:
        said["description"] = each.description
    if each.default is not None:
        said["default"] = each.default
    if constraints := _constraints(each):
        said["constraints"] = constraints
    return said


def _cfn_template(kind: ResourceType) -> dict[str, Any]:
    name = kind.name.rpartition("::")[2]
    return {
        "HeatTemplateFormatVersion": "2012-12-12",
        "Description": f"Initial template of {name}",
        "Parameters": {key: _cfn_parameter(each) for key, each in (kind.properties or {}).items()},
        "Resources": {
            name: {"Type": kind.name, "Properties": {key: {"Ref": key} for key in kind.properties or {}}},
        },
        "Outputs": {
            key: {"Description": words, "Value": {"Fn::GetAtt": [name, key]}}
            for key, words in (kind.attributes or {}).items()
        },
    }


def _cfn_parameter(each: Property) -> Mapping[str, Any]:
    said: dict[str, Any] = {"Type": _CFN.get(_PARAMETERS[each.kind], "Json")}
    if each.description:
        said["Description"] = each.description
    if each.default is not None:
        said["Default"] = each.default
    if each.allowed:
        said["AllowedValues"] = list(each.allowed)
    return said
