"""
CloudFormation's syntax for the server, which finds it by its entry point, and its translation to HOT.

The translation renames sections, keys and functions and evaluates some calls. All later code handles HOT only, and a
translated template has the semantics of HOT.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping
from typing import Any

from stoker.hot.flaw import Flaw, Path, flaw, map_at, optional_map
from stoker.hot.syntaxes import Syntax
from stoker.model.errors import InvalidSchemaError, InvalidTemplateSection, StackValidationFailed
from stoker_openstack.cloudformation.foreign import REPLACED, REPLACED_UNTIL, rewrite
from stoker_openstack.cloudformation.functions import FUNCTIONS

_SECTIONS = {
    "Description": "description",
    "Parameters": "parameters",
    "Conditions": "conditions",
    "Resources": "resources",
    "Outputs": "outputs",
}
_MAPPINGS = "Mappings"
#: The key that declares each version.
VERSIONS = {"2010-09-09": "AWSTemplateFormatVersion", "2012-12-12": "HeatTemplateFormatVersion"}
_RESOURCE = {
    "Type": "type",
    "Properties": "properties",
    "Metadata": "metadata",
    "DependsOn": "depends_on",
    "DeletionPolicy": "deletion_policy",
    "UpdatePolicy": "update_policy",
    "Description": "description",
    "Condition": "condition",
}
_OUTPUT = {"Value": "value", "Description": "description", "Condition": "condition"}
_PARAMETER = {"Type": "type", "Default": "default", "Description": "description", "NoEcho": "hidden", "Label": "label"}
_TYPES = {
    "String": "string",
    "Number": "number",
    "CommaDelimitedList": "comma_delimited_list",
    "Json": "json",
    "Boolean": "boolean",
}
#: A parameter's key, and HOT's constraint and its field.
_RULES = {
    "MinLength": ("length", "min"),
    "MaxLength": ("length", "max"),
    "MinValue": ("range", "min"),
    "MaxValue": ("range", "max"),
    "AllowedValues": ("allowed_values", None),
    "AllowedPattern": ("allowed_pattern", None),
}
_WORDS = "ConstraintDescription"
_BACK = {hot: cfn for names in (_SECTIONS, _RESOURCE, _OUTPUT, _PARAMETER) for cfn, hot in names.items()}


def in_hot_words(document: Mapping[str, Any]) -> dict[str, Any]:
    """Translate a document with a CloudFormation version to HOT. Raises flaws."""
    for name in document:
        if name not in _SECTIONS and name != _MAPPINGS and name not in VERSIONS.values():
            raise Flaw(f"The template section is invalid: {name}", (name,), InvalidTemplateSection)
    sections = {
        name: optional_map(dict(document), name, ()) for name in (*_SECTIONS, _MAPPINGS) if name != "Description"
    }
    resources = sections["Resources"]

    def calls(value: Any, *path: str) -> Any:
        try:
            return rewrite(value, resources, sections[_MAPPINGS])
        except StackValidationFailed as error:
            raise flaw(path, error.message) from None

    return {
        "description": document.get("Description"),
        "parameters": {name: _parameter(name, raw) for name, raw in sections["Parameters"].items()},
        "conditions": {name: calls(raw, "Conditions", name) for name, raw in sections["Conditions"].items()},
        "resources": {
            name: calls(_rename(raw, _RESOURCE, ("Resources", name), "a resource definition"), "Resources", name)
            for name, raw in resources.items()
        },
        "outputs": {
            name: calls(_rename(raw, _OUTPUT, ("Outputs", name), "an output definition"), "Outputs", name)
            for name, raw in sections["Outputs"].items()
        },
    }


def cfn_path(path: Path) -> Path:
    """Translate a path in the HOT document to the path in the CloudFormation template."""
    # The first part of a path names a section, the third a key of a definition; all others are the author's names.
    return tuple(_BACK.get(str(part), part) if at in (0, 2) else part for at, part in enumerate(path))


def _rename(raw: Any, names: Mapping[str, str], path: Path, what: str) -> dict[str, Any]:
    data = map_at(raw, path)
    for key in data:
        if key not in names:
            raise flaw((*path, key), f"Invalid keyword(s) inside {what}: {key}")
    return {names[key]: value for key, value in data.items()}


def _parameter(name: str, raw: Any) -> dict[str, Any]:
    path: Path = ("Parameters", name)
    data = map_at(raw, path)
    schema: dict[str, Any] = {}
    rules: dict[str, Any] = {}
    for key, value in data.items():
        if key in _PARAMETER:
            schema[_PARAMETER[key]] = value
        elif key in _RULES:
            rule, part = _RULES[key]
            rules[rule] = value if part is None else {**rules.get(rule, {}), part: value}
        elif key != _WORDS:
            raise flaw((*path, key), f"Invalid key '{key}' for parameter ({name})", InvalidSchemaError)
    if isinstance(schema.get("type"), str):
        schema["type"] = _TYPES.get(schema["type"], schema["type"])
    words = {"description": data[_WORDS]} if _WORDS in data else {}
    return {**schema, "constraints": [{rule: value, **words} for rule, value in rules.items()]}


#: The functions of HOT to which CloudFormation's are translated.
_HOT = ("get_param", "get_resource", "get_attr", "list_join", "str_replace", "resource_facade")


def _replace_in_hot(value: Any, resources: Collection[str], version: str) -> Any:
    return rewrite(value, resources, None, version)


SYNTAX = Syntax(
    versions=VERSIONS,
    translate=in_hot_words,
    source_path=cfn_path,
    calls=frozenset((*_HOT, *(function.name for function in FUNCTIONS))),
    functions=FUNCTIONS,
    replaced=REPLACED,
    replace_in_hot=_replace_in_hot,
    replaces_until=REPLACED_UNTIL,
)
