"""
CloudFormation's syntax for the server, which finds it by its entry point, and its translation to HOT.

The translation renames sections, keys and functions and evaluates some calls. All later code handles HOT only, and a
translated template has the semantics of HOT. The oldest versions of HOT may use CloudFormation's functions, too: each
call becomes the equivalent HOT function or its value.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping
from typing import Any

from stoker.hot.calls import LITERAL
from stoker.hot.flaw import Flaw, Path, flaw, map_at, optional_map
from stoker.hot.syntaxes import ReplacedCall, Syntax
from stoker.model.errors import InvalidSchemaError, InvalidTemplateSection, StackValidationFailed
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
_CONSTRAINT_WORDS = "ConstraintDescription"
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
            return rewrite(value, resources, mappings=sections[_MAPPINGS])
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
        elif key != _CONSTRAINT_WORDS:
            raise flaw((*path, key), f"Invalid key '{key}' for parameter ({name})", InvalidSchemaError)
    if isinstance(schema.get("type"), str):
        schema["type"] = _TYPES.get(schema["type"], schema["type"])
    words = {"description": data[_CONSTRAINT_WORDS]} if _CONSTRAINT_WORDS in data else {}
    return {**schema, "constraints": [{rule: value, **words} for rule, value in rules.items()]}


#: From this version on, HOT has none of these functions.
REPLACED_UNTIL = "2014-10-16"

REPLACED: Mapping[str, ReplacedCall] = {
    "Ref": ReplacedCall("The value of a parameter, or the reference of a resource.", REPLACED_UNTIL),
    "Fn::GetAZs": ReplacedCall("The availability zones of a region.", REPLACED_UNTIL),
    "Fn::Join": ReplacedCall("A list's items with a delimiter between them.", REPLACED_UNTIL),
    "Fn::Replace": ReplacedCall("A text with words replaced.", REPLACED_UNTIL),
    "Fn::Base64": ReplacedCall("The text itself: the service that passes it to a server encodes it.", REPLACED_UNTIL),
    "Fn::ResourceFacade": ReplacedCall("What the resource that a nested stack is has been given.", REPLACED_UNTIL),
    "Fn::GetAtt": ReplacedCall("An attribute of a resource."),
    "Fn::FindInMap": ReplacedCall("A value of the section Mappings."),
    "Fn::If": ReplacedCall("One of two values, as a condition says."),
    "Fn::Equals": ReplacedCall("Whether two values are the same."),
    "Fn::And": ReplacedCall("Whether all conditions hold."),
    "Fn::Or": ReplacedCall("Whether any condition holds."),
    "Fn::Not": ReplacedCall("Whether a condition does not hold."),
}
#: Without a cloud there is one zone, with OpenStack's usual name.
ZONES = ["nova"]
_CONDITIONS = {"Fn::If": "if", "Fn::Equals": "equals", "Fn::And": "and", "Fn::Or": "or"}


def rewrite(
    value: Any, resources: Collection[str], version: str = "", mappings: Mapping[str, Any] | None = None
) -> Any:
    """
    Translate each foreign call in ``value`` to HOT, innermost first.

    ``mappings`` None: the template is HOT of ``version``, and only the functions of that version are calls. Raises
    StackValidationFailed.
    """
    if isinstance(value, list):
        return [rewrite(item, resources, version, mappings) for item in value]
    if not isinstance(value, dict):
        return value
    if len(value) == 1:
        [(name, argument)] = value.items()
        if name == LITERAL:
            return value
        if name in REPLACED and (mappings is not None or version < (REPLACED[name].until or "")):
            return _call(name, rewrite(argument, resources, version, mappings), resources, mappings or {})
    return {key: rewrite(part, resources, version, mappings) for key, part in value.items()}


def _call(name: str, argument: Any, resources: Collection[str], mappings: Mapping[str, Any]) -> Any:
    if name == "Ref":
        if not isinstance(argument, str):
            raise StackValidationFailed('"Ref" needs the name of a parameter or of a resource')
        return {"get_resource": argument} if argument in resources else {"get_param": argument}
    if name == "Fn::FindInMap":
        return _find_in_map(argument, mappings)
    if name in _CONDITIONS:
        return {_CONDITIONS[name]: _condition_name(argument)}
    return _WORDS[name](argument)


def _find_in_map(argument: Any, mappings: Mapping[str, Any]) -> Any:
    if not isinstance(argument, list) or len(argument) != 3:
        raise StackValidationFailed('"Fn::FindInMap" needs a list: the name of a mapping and two keys')
    name, *keys = argument
    if not isinstance(name, str) or not isinstance(mappings.get(name), dict):
        raise StackValidationFailed(f'"Fn::FindInMap": there is no mapping {name!r}')
    return {"Fn::FindInMap": [mappings[name], *keys]}


def _condition_name(conditions: Any) -> Any:
    """``{Condition: name}`` is the form of a condition's name in a list of conditions."""
    if not isinstance(conditions, list):
        return conditions
    return [
        condition["Condition"] if isinstance(condition, dict) and condition.keys() == {"Condition"} else condition
        for condition in conditions
    ]


def _pair(name: str, argument: Any, what: str) -> tuple[Any, Any]:
    if not isinstance(argument, list) or len(argument) != 2:
        raise StackValidationFailed(f'"{name}" needs a list: {what}')
    first, second = argument
    return first, second


def _get_att(argument: Any) -> Any:
    parts = argument.split(".", 1) if isinstance(argument, str) else argument
    return {"get_attr": list(_pair("Fn::GetAtt", parts, "the name of a resource and of an attribute"))}


def _join(argument: Any) -> Any:
    return {"list_join": list(_pair("Fn::Join", argument, "a delimiter and a list"))}


def _replace(argument: Any) -> Any:
    params, template = _pair("Fn::Replace", argument, "a map of words and a text")
    return {"str_replace": {"template": template, "params": params}}


def _facade(argument: Any) -> Any:
    parts = {"Metadata": "metadata", "DeletionPolicy": "deletion_policy", "UpdatePolicy": "update_policy"}
    if not isinstance(argument, str) or argument not in parts:
        raise StackValidationFailed(f'"Fn::ResourceFacade" needs one of {", ".join(parts)}')
    return {"resource_facade": parts[argument]}


def _not(argument: Any) -> Any:
    if not isinstance(argument, list) or len(argument) != 1:
        raise StackValidationFailed('"Fn::Not" needs a list of one condition')
    return {"not": _condition_name(argument)[0]}


_WORDS: Mapping[str, Callable[[Any], Any]] = {
    "Fn::GetAtt": _get_att,
    "Fn::Join": _join,
    "Fn::Replace": _replace,
    "Fn::Base64": lambda argument: argument,
    "Fn::GetAZs": lambda _region: list(ZONES),
    "Fn::ResourceFacade": _facade,
    "Fn::Not": _not,
}


#: The functions of HOT to which CloudFormation's are translated.
_HOT = ("get_param", "get_resource", "get_attr", "list_join", "str_replace", "resource_facade")


SYNTAX = Syntax(
    versions=VERSIONS,
    translate=in_hot_words,
    source_path=cfn_path,
    calls=frozenset((*_HOT, *(function.name for function in FUNCTIONS))),
    functions=FUNCTIONS,
    replaced=REPLACED,
    replace_in_hot=rewrite,
    replaces_until=REPLACED_UNTIL,
)
