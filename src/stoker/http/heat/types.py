"""What can stand in a template: /v1/{project}/resource_types, template_versions, validate."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any

from stoker import hot
from stoker.http import reading
from stoker.http.call import Call, Reply
from stoker.http.heat import handing
from stoker.model.errors import EntityNotFound, Invalid
from stoker.resources.base import ResourceType
from stoker.resources.properties import Property
from stoker.stacks.validation import validated

_SUPPORT = {"status": "SUPPORTED", "message": None, "version": None, "previous_status": None}
#: The types of parameters that stand for types of properties.
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

#: By the names that they go by among template versions.
_CFN_VERSIONS = {f"{key}.{version}": version for version, key in hot.CFN_VERSIONS.items()}


def index(call: Call) -> Reply:
    described = reading.flag(call.query.get("with_description"), "with_description")
    status = call.query.get("support_status")
    pattern = call.query.get("name")
    try:
        wanted = re.compile(pattern or "")
    except re.error as error:
        raise Invalid(f"name must be a regular expression: {error}") from None
    shown = {
        name: each
        for name, each in sorted(call.services.engine.types.items())
        if name == each.name and wanted.match(name) and status in (None, "SUPPORTED")
    }
    if described:
        said = [{"resource_type": name, "description": each.description} for name, each in shown.items()]
        return Reply(200, {"resource_types": said})
    return Reply(200, {"resource_types": list(shown)})


def show(call: Call) -> Reply:
    kind = _kind(call)
    shown: dict[str, Any] = {
        "resource_type": kind.name,
        "properties": {name: _property(each) for name, each in (kind.properties or {}).items()},
        "attributes": {
            **{name: {"description": words} for name, words in (kind.attributes or {}).items()},
            "show": {"description": "Detailed information about resource.", "type": "map"},
        },
        "support_status": _SUPPORT,
    }
    if reading.flag(call.query.get("with_description"), "with_description"):
        shown["description"] = kind.description
    return Reply(200, shown)


def template(call: Call) -> Reply:
    """A template with one resource of the type, its properties as parameters and its attributes as outputs."""
    kind = _kind(call)
    form = call.query.get("template_type", "cfn")
    if form not in ("cfn", "hot"):
        raise Invalid(f"template_type must be cfn or hot, not {form}")
    return Reply(200, _hot_template(kind) if form == "hot" else _cfn_template(kind))


def versions(_call: Call) -> Reply:
    shown = [
        {
            "version": f"heat_template_version.{version}",
            "type": "hot",
            "aliases": [f"heat_template_version.{alias}"] if alias else [],
        }
        for version, alias in hot.VERSIONS.items()
    ]
    shown += [{"version": name, "type": "cfn", "aliases": []} for name in _CFN_VERSIONS]
    return Reply(200, {"template_versions": shown})


def functions(call: Call) -> Reply:
    version = _version(call.path["version"])
    reading.flag(call.query.get("with_condition_func"), "with_condition_func")
    shown = [{"functions": name, "description": words} for name, words in sorted(hot.functions_of(version).items())]
    return Reply(200, {"template_functions": shown})


def _version(said: str) -> str:
    if said in _CFN_VERSIONS:
        return _CFN_VERSIONS[said]
    version = said.removeprefix("heat_template_version.")
    version = next((date for date, alias in hot.VERSIONS.items() if alias and alias == version), version)
    if version not in hot.VERSIONS or not said.startswith("heat_template_version."):
        raise EntityNotFound(f"Template with version {said} not found")
    return version


def validate(call: Call) -> Reply:
    body = reading.body(call)
    nested = bool(reading.flag(call.query.get("show_nested"), "show_nested"))
    return Reply(200, validated(call.services.engine, handing.handed(body), show_nested=nested))


def _kind(call: Call) -> ResourceType:
    name = call.path["type_name"]
    found = call.services.engine.types.get(name)
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
